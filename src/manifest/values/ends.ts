/** Ends of a text, cut off in one pass: a pattern that is tried at each place takes its time over a hostile text. Pure. */

/** Without any of `char` at its end. */
export const withoutEnd = (text: string, char: string): string => {
  let end = text.length
  while (end > 0 && text[end - 1] === char) end -= 1
  return text.slice(0, end)
}

/** `name@version` → `name`; what stands before the last slash counts for nothing, and so does an `@` that begins it all. */
export const withoutVersion = (text: string): string => {
  const at = text.indexOf("@", Math.max(text.lastIndexOf("/") + 1, 1))
  return at === -1 ? text : text.slice(0, at)
}
