/**
 * Where this machine gets its Debian packages from, out of its own apt sources.
 *
 * Guarantees: reads both forms of source file (`*.list`, deb822 `*.sources`); answers the first enabled archive that
 * offers the suite's `main`; changes nothing and asks no network. Without one: Debian's own name.
 * Does not: follow `mirror+file:`, `cdrom:` or `file:` sources, which mean nothing inside an image.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

export const DEBIAN = "http://deb.debian.org/debian"

/** @typedef {{ uri: string, suites: string[], components: string[] }} Source */

/** `deb [options] URI SUITE COMPONENT…`. @param {string} text @returns {Source[]} */
const oneLineSources = (text) =>
  text.split("\n").flatMap((line) => {
    const [, uri, suite, rest] = /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line) ?? []
    return uri === undefined || suite === undefined
      ? []
      : [{ uri, suites: [suite], components: (rest ?? "").trim().split(/\s+/) }]
  })

/** Paragraphs of fields, where a line that begins with a blank goes on. @param {string} text @returns {Source[]} */
const paragraphSources = (text) =>
  text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .split(/\n\s*\n/)
    .flatMap((paragraph) => {
      const fields = new Map()
      for (const [, name, value] of paragraph.replace(/\n[ \t]+/g, " ").matchAll(/^([A-Za-z-]+):[ \t]*(.*)$/gm))
        fields.set(name.toLowerCase(), value.trim().split(/\s+/))
      const words = (/** @type {string} */ name) => fields.get(name) ?? []
      if (!words("types").includes("deb") || words("enabled")[0] === "no") return []
      return words("uris").map((/** @type {string} */ uri) => ({
        uri,
        suites: words("suites"),
        components: words("components"),
      }))
    })

/** @param {string} folder @param {string} ending */
const filesOf = (folder, ending) => {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(ending))
      .sort()
      .map((name) => join(folder, name))
  } catch {
    return []
  }
}
/** @param {string} file */
const textOf = (file) => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** @param {string} suite @param {string} [apt] the folder of apt's settings */
export const mirrorOf = (suite, apt = "/etc/apt") => {
  const parts = join(apt, "sources.list.d")
  const sources = [
    ...oneLineSources(textOf(join(apt, "sources.list"))),
    ...filesOf(parts, ".list").flatMap((file) => oneLineSources(textOf(file))),
    ...filesOf(parts, ".sources").flatMap((file) => paragraphSources(textOf(file))),
  ]
  const serves = (/** @type {Source} */ { uri, suites, components }) =>
    /^https?:\/\//.test(uri) && suites.includes(suite) && components.includes("main")
  return sources.find(serves)?.uri.replace(/\/+$/, "") ?? DEBIAN
}
