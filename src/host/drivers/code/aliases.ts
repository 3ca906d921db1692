/**
 * What a driver's own module gets for the packages that define things: the definition itself.
 *
 * Inside a sandbox a definition is only looked at; what it says was checked by the host, or is held against a manifest.
 * So `defineDriver` and its like give back what they are given, whichever package they are imported from, and nothing of
 * this host has to be shown in there.
 */

const NAMES = [
  "defineAction",
  "defineCli",
  "defineDriver",
  "definePolicy",
  "defineRunner",
  "defineSandbox",
  "defineSecret",
  "defineTool",
]
const PACKAGES = [
  "caisson",
  "caisson/define",
  "@agentproto/driver",
  "@agentproto/driver-runtime",
  "@agentproto/cli-runtime",
  "@agentproto/tool",
]

const address = (text: string): string => `data:text/javascript,${encodeURIComponent(text)}`

const definitions = address(NAMES.map((name) => `export const ${name} = (definition) => definition;`).join("\n"))

/** Says what an export holds: names of functions, and the rest as JSON; and has its transforms run. Runs inside. */
const describing = address(`
  export const describe = async (url, name) => {
    const module = await import(url)
    const entry = name in module ? module[name] : module.default?.[name]
    if (typeof entry !== "object" || entry === null) return null
    const functions = {}
    const data = {}
    for (const [key, value] of Object.entries(entry)) {
      if (typeof value === "function") functions[key] = []
      else if (key === "execute" || key === "transforms")
        functions[key] = Object.keys(value ?? {}).filter((name) => typeof value[name] === "function")
      else {
        try {
          data[key] = JSON.parse(JSON.stringify(value) ?? "null")
        } catch {}
      }
    }
    return { functions, data }
  }
  export const transform = async (url, name, values) => {
    const module = await import(url)
    const { transforms } = name in module ? module[name] : module.default[name]
    const made = []
    for (const [of, value] of values) {
      const one = await transforms[of](value)
      if (one === undefined) throw new TypeError("\`" + of + "\` made nothing of its value")
      made.push(one)
    }
    return made
  }`)

export const DESCRIBER = "caisson-describe"

export const ALIASES: Readonly<Record<string, string>> = Object.freeze({
  ...Object.fromEntries(PACKAGES.map((name) => [name, definitions])),
  [DESCRIBER]: describing,
})
