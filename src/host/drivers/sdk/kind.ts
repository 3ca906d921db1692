/**
 * Kind sdk (AIP-33): one function of a package, called once for each call in a fresh process inside the sandbox, never in
 * the host's own.
 *
 * Guarantees: what it sees is its module, its interpreter, the workspace by its contract and the hosts that it declares; it
 * starts nothing but the programs that its runner needs (`needs.native`). Secrets are named by marks that mean something in
 * the process inside alone. Arguments are data, filled in by templates that were checked; the function's word is judged like
 * any program's output.
 */
import type { DriverContract, JsonObject, JsonValue, SdkCall, SdkSpec, ToolContract } from "../../../manifest/types.ts"
import { fillTree, type TreeValues } from "../../invoke/template-tree.ts"
import { scopeOf } from "../../invoke/template-scope.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import type { Answer, DriverKindModule, KindCall, KindCommand, Needs, Remedies } from "../kind.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { Marks } from "../runner/marks.ts"
import type { RunnerRequest } from "../runner/request.ts"
import { available } from "./available.ts"
import { bind, placesOf, treesOf } from "./bind.ts"
import { moduleConversation } from "./conversation.ts"
import { packagesOf } from "./module.ts"

const specOf = ({ id, body }: DriverContract): SdkSpec => {
  if (body.kind !== "sdk") throw new TypeError(`${id} is of kind ${body.kind}, not sdk`)
  return body.sdk
}
const callOf = ({ binding, driver }: KindCall): SdkCall => {
  const { sdk } = binding.implementation
  if (sdk === undefined) throw new TypeError(`${driver.key} names no function for ${binding.tool.id}`)
  return sdk
}

const moduleOf = ({ driver, module }: KindCall): Answer<FoundModule> =>
  module === undefined
    ? {
        ok: false,
        code: "tool_unavailable",
        message: `the module behind ${driver.key} is not there`,
        details: { driver: driver.key },
      }
    : { ok: true, value: module }

/** It declares no paths of its own: it reads the workspace, and its contract says what it writes. */
const writesOf = ({ mutates }: ToolContract): readonly string[] =>
  mutates.filter((each) => each.class === "workspace").map(({ scope }) => scope.replace(/^\/+/, "") || "**")

/** Of any driver whose functions are called: it declares no paths of its own. */
export const moduleRemedies: Remedies = {
  write: "declare the path in `mutates` of the tool, or fix the tool",
  exec: "list the program in `runner: { needs: { native: [NAME] } }` of the driver, or fix the tool",
}

/** Of any driver whose functions are called. */
export const moduleNeeds = (call: KindCall): Answer<Needs> => {
  const found = moduleOf(call)
  if (!found.ok) return found
  const { interpreter, bundles, programs = {}, env = {}, image } = found.value
  return {
    ok: true,
    value: {
      executables: {
        program: interpreter.program,
        children: Object.keys(programs).length > 0,
        spawn: { ...interpreter.spawn, ...programs },
        bundles: { ...bundles, ...interpreter.bundles },
        ...(image === undefined ? {} : { image }),
      },
      fs: { read: ["**"], write: writesOf(call.tool), deny: [] },
      env: { pass: [], set: env },
      egress: call.driver.contract.egress,
      tty: false,
      privatePipes: true,
      notes: [],
    },
  }
}

const argumentsFor = (
  call: KindCall,
  sdk: SdkCall,
  marks: Marks,
): Answer<Pick<Extract<RunnerRequest, { do: "call" }>, "args" | "named">> => {
  if (sdk.arguments.style === "input") return { ok: true, value: { args: [wholeInput(call)] } }
  const scope = scopeOf(call.tool, call.binding.implementation)
  const values: TreeValues = { input: call.input, context: call.context, secret: marks.of, scope }
  const args: JsonValue[] = []
  for (const tree of treesOf(sdk.arguments)) {
    const filled = fillTree(tree, values)
    if (!filled.ok) return filled
    args.push(filled.value ?? null)
  }
  const [first] = args
  const byName = sdk.arguments.style === "object" && specOf(call.driver.contract).importStyle === "python"
  return { ok: true, value: byName ? { args: [], named: first as JsonObject } : { args } }
}

/** Python takes them by name, so that they stand one level higher than in the one object that Node gets. */
const putIn = (sdk: SdkCall, what: "signal" | "call", byName: boolean): readonly (readonly (string | number)[])[] =>
  placesOf(sdk.arguments, what).map((path) => (byName ? path.slice(1) : path))

/** A function whose tool requires others, and that is called with the input alone, is told of its call beside it. */
const contextFor = ({ tool, operation }: KindCall, sdk: SdkCall): { context?: JsonObject } =>
  sdk.arguments.style === "input" && tool.requires.tools.length > 0 ? { context: { operationKey: operation } } : {}

const clientFor = (call: KindCall, marks: Marks): Answer<{ readonly with?: JsonObject }> => {
  const { clientOptions } = specOf(call.driver.contract)
  if (clientOptions === undefined) return { ok: true, value: {} }
  const filled = fillTree(clientOptions, { input: {}, context: {}, secret: marks.of })
  return filled.ok ? { ok: true, value: { with: (filled.value ?? {}) as JsonObject } } : filled
}

const command = (call: KindCall): Answer<KindCommand> => {
  const found = moduleOf(call)
  if (!found.ok) return found
  const sdk = callOf(call)
  const marks = new Marks(call.driver.contract)
  const args = argumentsFor(call, sdk, marks)
  if (!args.ok) return args
  const client = clientFor(call, marks)
  if (!client.ok) return client
  const { module } = found.value
  const request: RunnerRequest = {
    do: "call",
    module,
    ref: sdk.functionRef,
    client: client.value,
    ...args.value,
    marks: marks.all(),
    signals: putIn(sdk, "signal", args.value.named !== undefined),
    calls: putIn(sdk, "call", args.value.named !== undefined),
    ...contextFor(call, sdk),
    ...(sdk.streaming === undefined ? {} : { streaming: sdk.streaming.mode }),
  }
  const { key, contract } = call.driver
  const asked = { key, tool: call.tool, auth: contract.auth, sdk }
  return { ok: true, value: moduleConversation(found.value, request, asked) }
}

/** It asks to run inside the host's own process, which no driver does (C-27, C-53). */
const isDowngraded = ({ runner }: DriverContract): boolean =>
  runner?.form === "inline" && runner.engine === "in-process"

export const sdkKind: DriverKindModule = {
  kind: "sdk",
  takesPackages: true,
  takesImage: true,
  bringsTransforms: false,
  remedies: () => moduleRemedies,
  bind,
  unenforceable: () => undefined,
  available: (driver, here) => available(driver, specOf(driver), here),
  packages: (driver) => packagesOf(driver, specOf(driver)),
  needs: moduleNeeds,
  command,
  outline: (call) => [specOf(call.driver.contract).package, callOf(call).functionRef.join(".")],
  evidence: (call) => {
    const { package: name, packageManager, importStyle } = specOf(call.driver.contract)
    const { version, composed, image } = call.module ?? {}
    return {
      package: name,
      package_manager: packageManager,
      ...(version === undefined ? {} : { package_version: version }),
      import_style: importStyle,
      ...(composed === undefined ? {} : { bundle: composed }),
      ...(image === undefined ? {} : { runner_image: image }),
      function_ref: callOf(call).functionRef.join("."),
      ...(isDowngraded(call.driver.contract) ? { downgraded: true } : {}),
    }
  },
}
