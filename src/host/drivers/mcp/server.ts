/** What starts a driver's server, in a call and outside of one alike. */
import type { CliSandbox, DriverContract, McpServer, McpSpec, ToolContract } from "../../../manifest/types.ts"
import type { Executables } from "../../../sandbox/backend.ts"
import type { Program } from "../program.ts"
import { executablesFor, insidePath } from "../programs.ts"

export type StartedServer = Exclude<McpServer, { kind: "remote" }>

export const specOf = ({ id, body }: DriverContract): McpSpec => {
  if (body.kind !== "mcp") throw new TypeError(`${id} is of kind ${body.kind}, not mcp`)
  return body.mcp
}

/** What a server may do that declares nothing: the contract alone says what it writes. */
export const sandboxOf = ({ sandbox }: McpSpec, tool: ToolContract | undefined): CliSandbox =>
  sandbox ?? {
    fs: {
      read: ["**"],
      write: (tool?.mutates ?? [])
        .filter((each) => each.class === "workspace")
        .map(({ scope }) => scope.replace(/^\/+/, "")),
      deny: [],
    },
    exec: { allow: false, spawn: [] },
    env: { pass: [], set: {} },
    tty: { required: false },
  }

/** Literal values; one that needs a secret is bound where secrets are. */
const literals = ({ env }: StartedServer): Readonly<Record<string, string>> =>
  Object.fromEntries(
    env.flatMap(({ name, value }) =>
      value.parts.every((part) => part.type === "literal") ? [[name, value.text]] : [],
    ),
  )

interface Start {
  readonly argv: readonly string[]
  readonly executables: Executables
  /** variables that the driver sets */
  readonly env: Readonly<Record<string, string>>
  /** programs of `exec.spawn` that are not on this machine */
  readonly absent: readonly string[]
}

export const startOf = (
  program: Program,
  server: StartedServer,
  { exec, env }: CliSandbox,
  findProgram: (name: string) => Program | undefined,
): Start => ({
  argv: [insidePath(program), ...server.args],
  ...executablesFor(findProgram, program, exec),
  env: { ...env.set, ...literals(server) },
})
