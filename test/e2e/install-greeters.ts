/** Two packages that greet, as the drivers in fixtures/installed ask for them. */
import type { PackageRegistry } from "../support/servers/package-registry.ts"

const js = (version: string): string => `#!/usr/bin/env node
const word = require("greet-word")
const [first, name] = process.argv.slice(2)
console.log(first === "--version" ? "${version}" : word + " " + name)
`
const py = (version: string): string => `import sys, greetword
def main():
    first = sys.argv[1]
    print("${version}" if first == "--version" else greetword.word + " " + sys.argv[2])
`

export const publishGreeters = async (registry: PackageRegistry, version = "2.1.0"): Promise<void> => {
  await registry.publish(
    { name: "greet-word", version: "1.0.0", files: { "index.js": "module.exports = 'hello'\n" } },
    {
      name: "greet",
      version,
      manifest: {
        dependencies: { "greet-word": "^1.0.0" },
        bin: { greet: "cli.js" },
        scripts: { preinstall: "touch ran", install: "touch ran", postinstall: "touch ran" },
      },
      files: { "cli.js": js(version) },
    },
  )
  registry.publishWheels(
    { name: "greetword", version: "1.0", files: { "greetword.py": "word = 'hello'\n" } },
    {
      name: "greetpy",
      version,
      requires: ["greetword>=1"],
      files: { "greetpy.py": py(version) },
      scripts: ["greetpy = greetpy:main"],
    },
  )
}
