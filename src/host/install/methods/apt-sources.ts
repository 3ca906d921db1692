/**
 * This machine's sources of Debian packages, without what is nobody else's business. Pure.
 *
 * Guarantees: sources by http and https alone are kept, of binary packages alone; one that carries a login is left out,
 * because a build has no secrets. Keys that lie in /etc/apt are named where they are shown inside.
 */
export interface SourceText {
  /** its name decides how apt reads it: `.list` or `.sources` */
  readonly name: string
  readonly text: string
}

/** Where /etc/apt is inside. */
export const APT_INSIDE = "/run/caisson/apt"

const addressOf = (text: string): URL | undefined => {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") return undefined
  return url
}
const moved = (text: string): string => text.replaceAll("/etc/apt/", `${APT_INSIDE}/`)

interface Kept {
  readonly text: string
  readonly urls: readonly URL[]
}

/** `deb [signed-by=…] http://host/debian suite component…` */
const keptLines = (text: string): Kept => {
  const urls: URL[] = []
  const lines = text.split("\n").flatMap((line) => {
    const [, uri = ""] = /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s/.exec(line) ?? []
    const url = addressOf(uri)
    if (url === undefined) return []
    urls.push(url)
    return [moved(line)]
  })
  return { text: `${lines.join("\n")}\n`, urls }
}

/** Stanzas of `Key: value` lines. */
const keptStanzas = (text: string): Kept => {
  const urls: URL[] = []
  const stanzas = text.split(/\n\s*\n/).flatMap((stanza) => {
    const plain = stanza.replaceAll(/^#.*\n?/gm, "")
    const types = /^Types:\s*(.*)$/im.exec(plain)?.[1] ?? ""
    const written = (/^URIs:\s*((?:.*)(?:\n[ \t].*)*)/im.exec(plain)?.[1] ?? "")
      .split(/\s+/)
      .filter((uri) => uri !== "")
    const found = written.map(addressOf)
    const isOff = /^Enabled:\s*no\s*$/im.test(plain)
    if (isOff || !types.split(/\s+/).includes("deb") || found.length === 0 || found.includes(undefined)) return []
    urls.push(...found.filter((url) => url !== undefined))
    return [moved(plain.replace(/^Types:.*$/im, "Types: deb"))]
  })
  return { text: `${stanzas.join("\n\n")}\n`, urls }
}

export const keptSource = ({ name, text }: SourceText): Kept =>
  name.endsWith(".sources") ? keptStanzas(text) : keptLines(text)
