/**
 * Kind builtin (AIP-30): a function of the host itself; no program, no sandbox, no network.
 *
 * Guarantees: `host_id` names this host (`caisson`, an alias of the operator's, or nothing at all) and the function is the
 * one for the tool; or it names a function that the embedder gave. Any other makes the driver unavailable. Files are
 * reached through the call's layer alone, so that what they change is judged and committed as a program's changes are.
 * Does not: seal a function of the program that embeds the host; envelope and receipt say so.
 */
import { digestOf } from "../../../manifest/values/digest.ts"
import type { CliSandbox, DatabaseCall, DriverContract, JsonObject } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import type {
  Answer,
  Binding,
  Desk,
  DriverAvailability,
  DriverKindModule,
  KindCall,
  KindCommand,
  Surroundings,
} from "../kind.ts"
import { HUMAN } from "../../../manifest/kinds/builtin.ts"
import { askMysql } from "../database/mysql-ask.ts"
import { askPostgres } from "../database/postgres-ask.ts"
import { serviceNeeds } from "../service-needs.ts"
import { unreadablePattern } from "../unreadable-pattern.ts"
import { editFile, readFile, writeFile } from "./files.ts"
import { runEmbedded } from "../embedded/run.ts"
import type { FoundFunction } from "../found-functions.ts"
import { benchOf, type HostFunction } from "./function.ts"
import { listFiles } from "./list.ts"
import { searchText } from "./search.ts"

const OWN_NAME = "caisson"
const UNSEALED = "unsealed: a function of the program that embeds this host ran in its own process"

const own: Readonly<Record<string, HostFunction>> = {
  "file.read": readFile,
  "file.write": writeFile,
  "file.edit": editFile,
  "files.list": listFiles,
  "text.search": searchText,
}

export const isOwn = (name: string): boolean => name === OWN_NAME || Object.hasOwn(own, name)

const hostIdOf = ({ tool, implementation }: Binding): string => implementation.builtin?.hostId ?? tool.id

const functionFor = (
  binding: Binding,
  { builtins, builtinHosts }: Pick<Surroundings, "builtins" | "builtinHosts">,
): FoundFunction | undefined => {
  const id = binding.tool.id
  const hostId = hostIdOf(binding)
  const isHere = hostId === id || hostId === OWN_NAME || builtinHosts.includes(hostId)
  const name = isHere ? id : hostId
  const given = builtins.get(name)
  if (given !== undefined) return { whose: "embedder", id: name, run: given }
  const run = isHere && Object.hasOwn(own, id) ? own[id] : undefined
  return run === undefined ? undefined : { whose: "caisson", id, run }
}

const absent = (name: string): readonly [message: string, fix: string] => [
  `there is no builtin \`${name}\` in this host`,
  `use one of ${Object.keys(own).join(", ")}, give the function to createHost as \`builtins: { id: fn }\`, or name the host in \`builtin_hosts\` of caisson.yaml`,
]

const available: DriverKindModule["available"] = async (_driver, here, bindings): Promise<DriverAvailability> => {
  const builtins = new Map<string, FoundFunction>()
  for (const binding of bindings) {
    if (binding.implementation.builtin?.database !== undefined || asksPerson(binding)) continue
    const found = functionFor(binding, here)
    if (found === undefined) {
      const [reason, fix] = absent(hostIdOf(binding))
      return { available: false, code: "tool_unavailable", reason, fix }
    }
    builtins.set(binding.tool.id, found)
  }
  return { available: true, builtins }
}

const foundFor = ({ tool, builtins }: KindCall): FoundFunction | undefined => builtins?.get(tool.id)

const fsOf = ({ tool, driver }: KindCall): CliSandbox["fs"] => {
  const { body } = driver.contract
  const declared = body.kind === "builtin" ? body.builtin.fs : undefined
  if (declared !== undefined) return declared
  const write = tool.mutates.filter((each) => each.class === "workspace").map(({ scope }) => scope.replace(/^\/+/, ""))
  return { read: ["**"], write: write.map((glob) => (glob === "" ? "**" : glob)), deny: [] }
}

const act = async (found: FoundFunction, call: KindCall, desk: Desk): Promise<Success | Failure> => {
  if (found.whose === "embedder") return runEmbedded(call, found.run, desk)
  const said = await found.run(wholeInput(call), benchOf(desk))
  if (!said.ok) return said
  const { value, notes = [] } = said.value
  return { ok: true, value, notes }
}

const asksPerson = (binding: Binding): boolean => hostIdOf(binding) === HUMAN

const nobody: Failure = {
  ok: false,
  code: "tool_unavailable",
  message: "there is nobody to be asked",
  undone: true,
  details: {},
}

const databaseOf = ({ binding }: KindCall): DatabaseCall | undefined => binding.implementation.builtin?.database

/** The database as it is shown; the statement is the author's, and long. */
const shownDatabase = ({ engine, host, port, name }: DatabaseCall): readonly string[] => [
  engine,
  `${host}:${port}/${name}`,
]

const command = (call: KindCall): Answer<KindCommand> => {
  const database = databaseOf(call)
  if (database !== undefined)
    return {
      ok: true,
      value: {
        run: "hosted",
        shown: shownDatabase(database),
        act: (desk) => (database.engine === "mysql" ? askMysql : askPostgres)(call, database, desk),
      },
    }
  if (asksPerson(call.binding))
    return {
      ok: true,
      value: {
        run: "hosted",
        shown: ["person"],
        repeatable: true,
        act: (desk) => desk.askPerson?.() ?? Promise.resolve(nobody),
      },
    }
  const found = foundFor(call)
  if (found === undefined) {
    const [message, hint] = absent(hostIdOf(call.binding))
    return { ok: false, code: "tool_unavailable", message, hint, details: { driver: call.driver.key } }
  }
  return {
    ok: true,
    value: { run: "hosted", shown: shownOf(call), takesFiles: true, act: (desk) => act(found, call, desk) },
  }
}

const shownOf = (call: KindCall): readonly string[] => {
  const database = databaseOf(call)
  return database === undefined ? ["builtin", named(call)] : shownDatabase(database)
}
const named = (call: KindCall): string => foundFor(call)?.id ?? hostIdOf(call.binding)

const evidence = (call: KindCall): JsonObject => {
  const database = databaseOf(call)
  if (database !== undefined) {
    const { statement } = database
    return {
      database: shownDatabase(database)[1] ?? "",
      ...(statement === undefined ? {} : { statement_digest: digestOf(statement) }),
    }
  }
  const found = foundFor(call)
  return { builtin: found?.id ?? hostIdOf(call.binding), sealed: found?.whose === "caisson" }
}

export const builtinKind: DriverKindModule = {
  kind: "builtin",
  bringsTransforms: false,
  remedies: () => ({ write: "declare the path in `mutates` of the tool" }),
  bind: (_driver, _index, tool, implementation) => ({ binding: { tool, implementation, needs: [] }, diagnostics: [] }),
  unenforceable: (driver: DriverContract) => {
    const fs = driver.body.kind === "builtin" ? driver.body.builtin.fs : undefined
    return fs === undefined ? undefined : unreadablePattern(driver, [{ fs }])
  },
  available,
  needs: (call) => ({
    ok: true,
    value:
      databaseOf(call) === undefined
        ? {
            fs: fsOf(call),
            env: { pass: [], set: {} },
            egress: [],
            tty: false,
            notes: foundFor(call)?.whose === "embedder" ? [UNSEALED] : [],
          }
        : serviceNeeds(call.driver.contract),
  }),
  command,
  outline: shownOf,
  evidence,
}
