/**
 * A package as an install method names it → its name and version, as a registry knows them.
 *
 * Guarantees: what comes out is a name of that method's registry; an address, a path, a repository or an option is
 * refused, whatever the installer itself would make of it: a name is what can be looked up, pinned and hashed later.
 */
export type PackageMethod = "brew" | "apt" | "dnf" | "pacman" | "choco" | "scoop" | "cargo" | "go" | "npm" | "pip"

export interface PackageName {
  /** as written */
  readonly package: string
  readonly name: string
  readonly version?: string
}

const WORD = "[A-Za-z0-9][A-Za-z0-9+._-]*"
const VERSION = "[A-Za-z0-9*^~<>=!][A-Za-z0-9*^~<>=!.,+_-]*"
/** group 1: the name, group 2: the version */
const FORMS: Readonly<Record<PackageMethod, RegExp>> = {
  apt: /^([a-z0-9][a-z0-9+.-]+(?::[a-z0-9]+)?)(?:=([A-Za-z0-9][A-Za-z0-9.+:~-]*))?$/,
  dnf: new RegExp(`^(${WORD})$`),
  pacman: new RegExp(`^((?:${WORD}/)?${WORD})$`),
  choco: new RegExp(`^(${WORD})$`),
  scoop: new RegExp(`^((?:${WORD}/)?${WORD})(?:@(${VERSION}))?$`),
  brew: /^((?:[A-Za-z0-9][\w.+-]*\/){0,2}[A-Za-z0-9][\w.+@-]*)$/,
  cargo: new RegExp(`^([A-Za-z][A-Za-z0-9_-]*)(?:@(${VERSION}))?$`),
  go: /^((?:[a-z0-9-]+\.)+[a-z0-9-]+(?:\/[A-Za-z0-9_~][\w.~-]*)+)(?:@([A-Za-z0-9][\w.+-]*))?$/,
  npm: new RegExp(`^((?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*)(?:@(${VERSION}))?$`),
  pip: /^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:((?:===?|~=|!=|<=?|>=?)[A-Za-z0-9*.!+_-]+(?:,(?:===?|~=|!=|<=?|>=?)[A-Za-z0-9*.!+_-]+)*))?$/,
}

export function parsePackage(method: PackageMethod, text: string): PackageName | undefined {
  const found = FORMS[method].exec(text)
  const [, name, version] = found ?? []
  if (name === undefined || name.split("/").some((part) => part === "." || part === "..")) return undefined
  return { package: text, name, ...(version === undefined ? {} : { version }) }
}
