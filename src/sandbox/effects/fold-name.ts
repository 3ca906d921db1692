/**
 * Which names other file systems take for the same one.
 *
 * Guarantees: two names that ext4 with casefold, APFS, HFS+, vfat or NTFS would open as one fold to the same text: case
 * is gone, code points that those ignore are gone, compatibility forms are plain, and so are the trailing dots, blanks
 * and stream names of NTFS. May fold names together that no file system does: its callers only get stricter by that.
 * Pure. Does not: say what a name means.
 */

/** Joiners, direction marks, variation selectors: HFS+ and casefolding ext4 look names up without them. */
const IGNORED = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu
const PLAIN = /^[!-9;-}]*$/

export const foldName = (name: string): string => {
  // Upper case first: dotless i and long s have no lower case of their own, but are `i` and `s` where case is blind.
  if (PLAIN.test(name)) return name.toLowerCase().replace(/\.+$/, "")
  const bare = name.normalize("NFKD").replace(IGNORED, "").toUpperCase().toLowerCase().normalize("NFKD")
  return bare.replace(/:.*$/s, "").replace(/[. ]+$/, "")
}

const SHORT = /^([^~]{1,6})~\d{1,6}(?:\.[^.]{0,3})?$/

/** The part before `~1` of a name in NTFS's short form (`GIT~1` for `.git`), folded; undefined where it is none. */
export const shortStem = (folded: string): string | undefined => SHORT.exec(folded)?.[1]

/** What a name's short form begins with. */
export const stemOf = (folded: string): string => {
  const bare = folded.replace(/^\.+/, "")
  const dot = bare.lastIndexOf(".")
  return (dot > 0 ? bare.slice(0, dot) : bare).replaceAll(/[. ]/g, "").slice(0, 6)
}
