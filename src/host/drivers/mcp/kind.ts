/**
 * Kind mcp (AIP-32): a server that speaks the Model Context Protocol, and the tool of it that serves each contract.
 *
 * Guarantees: a server that is started is started anew for each call, in the call's own sandbox, unless its driver has it
 * kept (`keepalive`), and talked with over its own streams; nothing of the call is in its arguments or its environment. Before the tool is called, the server is asked
 * what it is, every time: a tool that is not there, does not fit the contract, or is not what was accepted is not called.
 * A remote server is spoken with by the host itself, through the call's outlet.
 * Without a `sandbox` of its own a server that is started reads the workspace, writes where the contract says, and starts nothing.
 */
import type { JsonObject, McpCall } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import { expirySign, withSign } from "../expiry.ts"
import type { Answer, DriverKindModule, KindCall, KindCommand, Needs } from "../kind.ts"
import { serviceNeeds } from "../service-needs.ts"
import { unreadablePattern } from "../unreadable-pattern.ts"
import { available } from "./available.ts"
import { bind } from "./bind.ts"
import { packagesOf } from "./locate.ts"
import { argumentsFor } from "./offer.ts"
import { protectedResource } from "./protected.ts"
import { callRemote } from "./remote.ts"
import { renamedSecret, sandboxOf, specOf, startOf } from "./server.ts"
import { callTool, keepsServer } from "./talk.ts"

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
  if (server.kind === "remote") {
    const value = serviceNeeds(driver.contract)
    const unkept = "`keepalive` is for servers that are started here: this one has a session for each call"
    return { ok: true, value: spec.connection.keepalive ? { ...value, notes: [...value.notes, unkept] } : value }
  }
  const sandbox = sandboxOf(spec, tool)
  const start = startOf(call, server, sandbox, findProgram)
  if (start === undefined) return notThere(driver.key)
  const { executables, env, absent, startsIn } = start
  return {
    ok: true,
    value: {
      executables,
      fs: sandbox.fs,
      env: { pass: sandbox.env.pass, set: env },
      egress: driver.contract.egress,
      tty: false,
      ...(startsIn === undefined ? {} : { startsIn }),
      notes:
        absent.length === 0
          ? []
          : [
              `exec.spawn names programs that are not ${startsIn === undefined ? "on this machine" : "in its image"}: ${absent.join(", ")}`,
            ],
    },
  }
}

/** Names that a server's own tool tells its error by, as in `Error executing tool x: TokenExpired: …`. */
const namesIn = ({ code, message, details }: Failure): readonly string[] =>
  code === "upstream_error" && "tool_name" in details
    ? [...message.matchAll(/(?<![\w$.])([A-Za-z_$][\w$.]*)(?=:|\s*$)/g)].map(([, name = ""]) => name)
    : []

/** What a remote server's refusal, or the error of a server's tool, says of the login. */
const signed = (call: KindCall, end: Success | Failure): Success | Failure => {
  if (end.ok) return end
  const { status } = end.details
  const { key, contract } = call.driver
  const { expiry, ...failure } = end
  const said = expirySign(contract.auth, {
    classes: namesIn(end),
    ...(typeof status === "number" ? { status } : {}),
  })
  // A server that got a token and wants one does not take that one; of a key that a person set, that is theirs to judge.
  const sign = contract.auth?.login === undefined ? said : (expiry ?? said)
  if (contract.auth === undefined && failure.code === "auth_required")
    return { ...failure, hint: "add `auth` to the driver: a `login`, and a variable in `state.env` for its token" }
  return withSign(failure, sign, `${key} is no longer signed in`)
}

const command = (call: KindCall): Answer<KindCommand> => {
  const { driver, binding, tool } = call
  const spec = specOf(driver.contract)
  const { server } = spec
  const values = argumentsFor(callOf(call), wholeInput(call))
  if (server.kind === "remote")
    return {
      ok: true,
      value: {
        run: "hosted",
        shown: [server.url],
        act: async (desk) => {
          const [bearer] = driver.contract.auth?.state.env ?? []
          return signed(call, await callRemote(desk, { url: server.url, spec, bearer }, binding, values))
        },
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
      converse: async (session) => signed(call, await callTool(session, spec, binding, values)),
      ...(spec.connection.keepalive ? { keeps: keepsServer(spec, binding, values) } : {}),
    },
  }
}

const evidence = (call: KindCall): JsonObject => {
  const { server, transport } = specOf(call.driver.contract)
  const { version } = call.module ?? {}
  const { image } = call.image ?? {}
  return {
    mcp_tool_name: callOf(call).toolName,
    transport,
    server_kind: server.kind,
    ...(version === undefined ? {} : { server_version: version }),
    ...(image === undefined ? {} : { server_image: image }),
  }
}

export const mcpKind: DriverKindModule = {
  kind: "mcp",
  bringsTransforms: false,
  remedies: () => ({
    write:
      "declare the path in `mutates` of the tool, and in `sandbox.fs.write` of a driver that has one, or fix the server",
    exec: "set `sandbox.exec.allow: true` in the driver and list the program in `exec.spawn`, or fix the server",
  }),
  bind,
  image: (driver) => {
    const { server } = specOf(driver)
    return server.kind === "docker" ? server.image : undefined
  },
  reachesFiles: (driver) => specOf(driver).server.kind !== "remote",
  service: (driver) => {
    const { server } = specOf(driver)
    return server.kind === "remote" ? server.url : undefined
  },
  resource: (driver) => {
    const spec = specOf(driver)
    return spec.server.kind === "remote" ? protectedResource(spec.server.url, spec) : undefined
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
  packages: (driver, wanted) => packagesOf(driver, specOf(driver).server, wanted),
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
