/**
 * What a driver's kind says of its reach: what it is the driver of, how that is started, and what a call of one tool
 * gets. Pure.
 */
import type { CliSandbox, DriverContract, Implementation } from "../../manifest/types.ts"

/** What makes it this driver and no other: its program, service, package or server. Versions may change, this may not. */
export const identityOf = ({ body }: DriverContract): readonly unknown[] => {
  switch (body.kind) {
    case "cli":
      return [body.kind, body.cli.bin]
    case "http":
      return [body.kind, body.http.base]
    case "mcp": {
      const { server, transport } = body.mcp
      const { kind, ...rest } = server as { readonly kind: string } & Readonly<Record<string, unknown>>
      return [body.kind, transport, kind, rest["package"], rest["image"], rest["url"], rest["path"]]
    }
    case "sdk":
      return [body.kind, body.sdk.packageManager, body.sdk.package]
    case "code":
      return [body.kind, body.as]
    case "builtin":
      return [body.kind]
  }
}

/** What a server is started with, by the path of the field: a flag less may open it as well as one more. */
export const startedWith = ({ body }: DriverContract): Readonly<Record<string, unknown>> => {
  if (body.kind !== "mcp" || body.mcp.server.kind === "remote") return {}
  const { args, env } = body.mcp.server
  return { "server.args": args, "server.env": env.map(({ name, value }) => [name, value.text]) }
}

/** What a builtin or a server sees and writes that says nothing of it; its contracts bound the rest. */
const EVERYTHING = { read: ["**"], write: ["**"], deny: [] }

const sandboxOf = ({ body }: DriverContract): CliSandbox | undefined => {
  if (body.kind === "cli") return body.cli.sandbox
  if (body.kind === "mcp" && body.mcp.server.kind === "remote") return undefined
  if (body.kind === "mcp" && body.mcp.sandbox !== undefined) return body.mcp.sandbox
  if (body.kind !== "builtin" && body.kind !== "mcp") return undefined
  return {
    fs: (body.kind === "builtin" ? body.builtin.fs : undefined) ?? EVERYTHING,
    exec: { allow: false, spawn: [] },
    env: { pass: [], set: {} },
    tty: { required: false },
  }
}

/** The driver's own narrowing for the tool counted. */
export const reachFor = (
  driver: DriverContract,
  { cli }: Implementation,
): { readonly egress: readonly string[]; readonly sandbox?: CliSandbox } => {
  const sandbox = cli?.sandbox ?? sandboxOf(driver)
  const egress = (cli?.egress ?? driver.egress).map((each) => each.text)
  return sandbox === undefined ? { egress } : { egress, sandbox }
}

const NOTHING: CliSandbox["fs"] = { read: [], write: [], deny: [] }

/** The paths that its own kind declares, for what is run in its home outside a call. */
export const declaredPaths = ({ body }: DriverContract): CliSandbox["fs"] =>
  body.kind === "cli" ? body.cli.sandbox.fs : NOTHING
