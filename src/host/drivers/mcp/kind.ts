/**
 * Kind mcp (AIP-32): a server that speaks the Model Context Protocol, and the tool of it that serves each contract.
 *
 * Guarantees: a server that is started is started anew for each call, in the call's own sandbox, and talked with over its
 * own streams; nothing of the call is in its arguments or its environment. Before the tool is called, the server is asked
 * what it is, every time: a tool that is not there, does not fit the contract, or is not what was accepted is not called.
 * A remote server is spoken with by the host itself, through the call's outlet.
 * Without a `sandbox` of its own a server that is started reads the workspace, writes where the contract says, and starts nothing.
 */
import type { JsonObject, McpCall } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import type { Answer, DriverKindModule, KindCall, KindCommand, Needs } from "../kind.ts"
import { unreadablePattern } from "../unreadable-pattern.ts"
import { available } from "./available.ts"
import { bind } from "./bind.ts"
import { packagesOf } from "./locate.ts"
import { argumentsFor } from "./offer.ts"
import { callRemote } from "./remote.ts"
import { renamedSecret, sandboxOf, specOf, startOf } from "./server.ts"
import { callTool } from "./talk.ts"

const notThere = (key: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `the server behind ${key} is not there`,
  details: { driver: key },
})

const callOf = ({ driver, binding }: KindCall): McpCall => {
  const { mcp } = binding.implementation
  if (mcp === undefined) throw new TypeError(`${driver.key} names no tool of its server for ${binding.tool.id}`)
  return mcp
}

const needs: DriverKindModule["needs"] = (call, findProgram): Answer<Needs> => {
  const { driver, tool } = call
  const spec = specOf(driver.contract)
  const { server } = spec
  if (server.kind === "remote")
    return {
      ok: true,
      value: {
        fs: { read: [], write: [], deny: [] },
        env: { pass: [], set: {} },
        egress: driver.contract.egress,
        tty: false,
        notes: [],
      },
    }
  const sandbox = sandboxOf(spec, tool)
  const start = startOf(call, server, sandbox, findProgram)
  if (start === undefined) return notThere(driver.key)
  const { executables, env, absent } = start
  return {
    ok: true,
    value: {
      executables,
      fs: sandbox.fs,
      env: { pass: sandbox.env.pass, set: env },
      egress: driver.contract.egress,
      tty: false,
      notes:
        absent.length === 0 ? [] : [`exec.spawn names programs that are not on this machine: ${absent.join(", ")}`],
    },
  }
}

const command = (call: KindCall): Answer<KindCommand> => {
  const { driver, binding, tool, input } = call
  const spec = specOf(driver.contract)
  const { server } = spec
  const values = argumentsFor(callOf(call), input)
  if (server.kind === "remote")
    return {
      ok: true,
      value: {
        run: "hosted",
        shown: [server.url],
        act: (desk) => callRemote(desk, server.url, spec, binding, values),
      },
    }
  const start = startOf(call, server, sandboxOf(spec, tool), () => undefined)
  if (start === undefined) return notThere(driver.key)
  return {
    ok: true,
    value: {
      run: "conversation",
      argv: start.argv,
      files: {},
      converse: (session) => callTool(session, spec, binding, values),
    },
  }
}

const evidence = (call: KindCall): JsonObject => {
  const { server, transport } = specOf(call.driver.contract)
  const { version } = call.module ?? {}
  return {
    mcp_tool_name: callOf(call).toolName,
    transport,
    server_kind: server.kind,
    ...(version === undefined ? {} : { server_version: version }),
  }
}

export const mcpKind: DriverKindModule = {
  kind: "mcp",
  bringsTransforms: false,
  bind,
  service: (driver) => {
    const { server } = specOf(driver)
    return server.kind === "remote" ? server.url : undefined
  },
  unenforceable: (driver) => {
    const { sandbox, server } = specOf(driver)
    const renamed = server.kind === "remote" ? undefined : renamedSecret(server)
    if (renamed !== undefined)
      return {
        control: "env",
        reason: `${driver.id} wants a secret in the variable ${renamed}, which is not the secret's own name`,
        fix: `write \`${renamed}: "\${secrets.${renamed}}"\`, and keep the secret under that name`,
      }
    return sandbox === undefined ? undefined : unreadablePattern(driver, [sandbox])
  },
  packages: (driver) => packagesOf(driver, specOf(driver).server),
  available: (driver, here, bindings) => available(driver, specOf(driver), here, bindings),
  needs,
  command,
  outline: ({ driver, program }) => {
    const { server } = specOf(driver.contract)
    if (server.kind === "remote") return [server.url]
    const name = server.kind === "binary" ? server.path : server.kind === "npm" ? server.package : server.image
    return [program?.name ?? name, ...server.args]
  },
  evidence,
}
