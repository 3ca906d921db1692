/** What starts a driver's server, in a call and outside of one alike. */
import type { CliSandbox, DriverContract, McpServer, McpSpec, ToolContract } from "../../../manifest/types.ts"
import type { Executables, ImageProgram } from "../../../sandbox/backend.ts"
import type { KindCall } from "../kind.ts"
import type { Program } from "../program/program.ts"
import { executablesFor, insidePath } from "../program/programs.ts"

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

/** A program, a file of a package with the interpreter that runs it, or what an image starts. */
export type FoundServer = Pick<KindCall, "program" | "module" | "image">

/** A secret is given under its own name, wherever secrets are; under another one this host cannot give it. */
export const renamedSecret = ({ env }: StartedServer): string | undefined =>
  env.find(
    ({ name, value }) =>
      value.parts.some((part) => part.type === "value") && value.text.replaceAll(/\s/g, "") !== `\${secrets.${name}}`,
  )?.name

/** Literal values; those that are secrets are bound where secrets are. */
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
  /** absent: in the workspace */
  readonly startsIn?: string
}

/** By an image's own words. What its author set is there too, where the driver sets nothing else. */
const ofImage = ({ image, argv, starts, absent, env, folder }: ImageProgram, exec: CliSandbox["exec"]): Start => ({
  argv,
  executables: {
    program: argv[0] ?? "",
    children: exec.allow,
    spawn: starts,
    bundles: {},
    image,
    imagePrograms: true,
  },
  env,
  absent,
  startsIn: folder,
})

/** Undefined: nothing that could be started was found. */
export const startOf = (
  { program, module: found, image }: FoundServer,
  server: StartedServer,
  { exec, env }: CliSandbox,
  findProgram: (name: string) => Program | undefined,
): Start | undefined => {
  const set = { ...env.set, ...literals(server) }
  if (image !== undefined) {
    const start = ofImage(image, exec)
    return { ...start, env: { ...start.env, ...set } }
  }
  if (program !== undefined)
    return {
      argv: [insidePath(program), ...server.args],
      ...executablesFor(findProgram, program, exec),
      env: { ...program.env, ...set },
    }
  const script = found !== undefined && "path" in found.module ? found.module.path : undefined
  if (found === undefined || script === undefined) return undefined
  const { interpreter, bundles } = found
  const names = exec.allow ? exec.spawn : []
  const others = names.flatMap((name) => findProgram(name) ?? [])
  return {
    argv: [interpreter.inside, script, ...server.args],
    executables: {
      program: interpreter.program,
      children: exec.allow,
      spawn: { ...interpreter.spawn, ...Object.fromEntries(others.map((other) => [other.name, other.found])) },
      bundles: { ...bundles, ...interpreter.bundles },
    },
    env: set,
    absent: names.filter((name) => !others.some((other) => other.name === name)),
  }
}
