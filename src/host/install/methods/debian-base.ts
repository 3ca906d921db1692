/**
 * What every Debian system has, as dpkg's own list of it: the rest is what a layer brings along. Pure.
 *
 * Guarantees: essential and required packages that are installed here, with all that they depend on; nothing else, so
 * that a layer does not depend on what somebody once installed on this machine. Linear in the list.
 */
const PARAGRAPH = /\n\s*\n/

interface Installed {
  readonly text: string
  readonly fields: ReadonlyMap<string, string>
}

const fieldsOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split(/\n(?![ \t])/)
      .map(
        (line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()] as const,
      ),
  )

/** Names in a relation: `a (>= 1), b | c` → [[a], [b, c]] */
const relationOf = (text: string): readonly (readonly string[])[] =>
  text
    .split(",")
    .map((part) => part.split("|").map((name) => /^\s*([a-z0-9][a-z0-9+.-]*)/.exec(name)?.[1] ?? ""))
    .filter((names) => names.some((name) => name !== ""))

export const baseStatus = (status: string): string => {
  const installed = new Map<string, Installed>()
  const providers = new Map<string, string>()
  for (const text of status.split(PARAGRAPH)) {
    const fields = fieldsOf(text)
    const name = fields.get("package")
    if (name === undefined || !(fields.get("status") ?? "").endsWith(" installed")) continue
    installed.set(name, { text: text.trim(), fields })
    for (const [provided = ""] of relationOf(fields.get("provides") ?? "")) providers.set(provided, name)
  }
  const base = new Set<string>()
  const wanted = [...installed].flatMap(([name, { fields }]) =>
    fields.get("essential") === "yes" || fields.get("priority") === "required" ? [name] : [],
  )
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    const one = installed.get(name)
    if (one === undefined || base.has(name)) continue
    base.add(name)
    for (const field of ["depends", "pre-depends"])
      for (const names of relationOf(one.fields.get(field) ?? "")) {
        const found =
          names.find((each) => installed.has(each)) ??
          names.map((each) => providers.get(each)).find((each) => each !== undefined)
        if (found !== undefined) wanted.push(found)
      }
  }
  return [...installed].flatMap(([name, { text }]) => (base.has(name) ? [`${text}\n\n`] : [])).join("")
}
