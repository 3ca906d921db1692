/** Tools that cost something, and one that wants to know whose team asks: written for one test, and run by `/bin/echo`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const tool = (id: string, more: string): string => `---
name: ${id}
id: ${id}
description: A tool of a test.
version: 1.0.0
inputs: { type: object, additionalProperties: false, properties: {} }
outputs: { type: string }
idempotent: true
${more}
---
`
const driver = (id: string, implemented: string, argv: string, more = ""): string => `---
name: ${id}
id: ${id}
description: A driver of a test.
version: 1.0.0
kind: cli
bin: echo
version_check: { cmd: echo --version, parse: '(\\d+\\.\\d+)', range: '>=1.0' }
sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: ["**"], write: [] }
  exec: { allow: false }
  env: { pass: [] }
output: { default_format: text }
${more}
implements:
  - tool: ${implemented}
    version: ^1.0.0
    metadata: { cli: { argv: [${argv}] } }
---
`

/**
 * `cheap.ask`, `metered.ask` (1500 units), `dear.ask` (250000 units), `team.ask`, and two that name a class of data: answers
 * the folder.
 */
export const writeCostly = (folder: string): string => {
  const at = join(folder, "costly")
  const write = (id: string, contract: string, made: string): void => {
    mkdirSync(join(at, id, "driver"), { recursive: true })
    writeFileSync(join(at, id, "TOOL.md"), contract)
    writeFileSync(join(at, id, "driver", "DRIVER.md"), made)
  }
  write("cheap", tool("cheap.ask", ""), driver("cheap", "cheap.ask", "cheap"))
  write(
    "metered",
    tool("metered.ask", "cost_class: metered"),
    driver("metered", "metered.ask", "metered", "cost_override: { cost_class: metered, cost_units_per_call: 1500 }"),
  )
  write(
    "dear",
    tool("dear.ask", "cost_class: expensive"),
    driver(
      "dear",
      "dear.ask",
      "dear",
      "cost_override: { cost_class: trivial, cost_units_per_call: 250000, currency: EUR }",
    ),
  )
  write(
    "team",
    tool(
      "team.ask",
      "metadata: { contextSchema: { type: object, additionalProperties: false, required: [team], properties: { team: { type: string }, note: { type: string } } } }",
    ),
    driver("team", "team.ask", '"${context.team}", "${context.note}"'),
  )
  write(
    "secretive",
    tool("secretive.ask", "metadata: { operation: { data_classification: customers } }"),
    driver("secretive", "secretive.ask", "secretive"),
  )
  write(
    "unheard",
    tool("unheard.ask", "metadata: { operation: { data_classification: of-nobody } }"),
    driver("unheard", "unheard.ask", "unheard"),
  )
  return at
}
