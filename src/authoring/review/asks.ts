/**
 * What a driver asks for, as rows that can be compared with those of another day, and which of them want a second look.
 *
 * Guarantees: pure; of the same manifests the same rows, in one order. Of every kind of driver: whatever it may touch, start,
 * reach, be given or have run beside its calls is a row, so that none of it can change without a row that changes.
 */
import { globCovers } from "../../manifest/values/sandbox-globs.ts"
import type { CliSandbox, DriverContract, ToolContract } from "../../manifest/types.ts"
import { runsOthers } from "../learn/propose.ts"
import { besideRows } from "./beside.ts"
import type { PageRow } from "./page.ts"

/** Whether other programs run or trust what stands at this glob, without being asked. */
type IsTrusted = (glob: string) => boolean

const risky = (text: string, risk: string | undefined): PageRow => (risk === undefined ? { text } : { text, risk })

/** Variables by which what a program loads or runs is changed. */
const LOADS =
  /^(?:LD_|DYLD_|GIT_|NODE_OPTIONS$|NODE_PATH$|PYTHON|PERL5|RUBY(?:OPT|LIB)$|BASH_ENV$|ENV$|SHELLOPTS$|PROMPT_COMMAND$|JAVA_TOOL_OPTIONS$|_JAVA_OPTIONS$|GLIBC_TUNABLES$)/

const starts = (name: string): PageRow =>
  risky(`starts ${name}`, runsOthers(name) ? "runs what it is given" : undefined)

const written = (glob: string, isTrusted: IsTrusted): string | undefined =>
  globCovers(glob, "**")
    ? "anything in the workspace"
    : isTrusted(glob)
      ? "other programs run or trust what stands there"
      : undefined

const fsRows = ({ read, write, deny }: CliSandbox["fs"], isTrusted: IsTrusted): readonly PageRow[] => [
  ...read.map((glob) => risky(`reads ${glob}`, glob.startsWith("/") ? "outside of the workspace" : undefined)),
  ...deny.map((glob) => ({ text: `never reads ${glob}` })),
  ...write.map((glob) => risky(`writes ${glob}`, written(glob, isTrusted))),
]

const sandboxRows = ({ fs, exec, env, tty }: CliSandbox, isTrusted: IsTrusted): readonly PageRow[] => [
  ...fsRows(fs, isTrusted),
  ...(exec.allow ? exec.spawn : []).map(starts),
  ...env.pass.map((name) => ({ text: `variable ${name}` })),
  ...Object.entries(env.set).map(([name, value]) =>
    risky(`variable ${name} is ${value}`, LOADS.test(name) ? "it changes what programs load or run" : undefined),
  ),
  ...(tty.required ? [{ text: "is given a terminal" }] : []),
]

/** What serves the calls, by its kind. */
const servedBy = ({ body, implements: entries }: DriverContract, isTrusted: IsTrusted): readonly PageRow[] => {
  switch (body.kind) {
    case "cli": {
      const { bin, binArgs, sandbox } = body.cli
      return [
        risky(`program ${bin}`, runsOthers(bin) ? "runs what it is given" : undefined),
        ...sandboxRows(sandbox, isTrusted),
        ...entries.flatMap(({ tool, cli }) =>
          cli === undefined
            ? []
            : [{ text: `for ${tool} runs ${JSON.stringify([bin, ...binArgs, ...cli.argv]).slice(1, -1)}` }],
        ),
      ]
    }
    case "http":
      return entries.flatMap(({ tool, http }) =>
        http === undefined
          ? []
          : [
              {
                text: `for ${tool} asks ${http.method} ${body.http.base.origin}${body.http.base.path}${http.endpoint.text}`,
              },
            ],
      )
    case "mcp": {
      const { server, sandbox } = body.mcp
      const named =
        server.kind === "remote"
          ? `the server at ${server.url}`
          : `the server ${server.kind === "binary" ? server.path : server.kind === "npm" ? server.package : server.image}`
      const args = server.kind === "remote" ? [] : server.args
      return [
        { text: [named, ...args.map((arg) => JSON.stringify(arg))].join(" ") },
        ...(server.kind === "remote" ? [] : server.env).map(({ name, value }) =>
          risky(
            `variable ${name} is ${value.text}`,
            LOADS.test(name) ? "it changes what programs load or run" : undefined,
          ),
        ),
        ...(sandbox === undefined ? [] : sandboxRows(sandbox, isTrusted)),
        ...entries.flatMap(({ tool, mcp }) =>
          mcp === undefined ? [] : [{ text: `for ${tool} calls the server's ${mcp.toolName}` }],
        ),
      ]
    }
    case "sdk": {
      const { packageManager, package: name, packageVersion, entrypoint } = body.sdk
      const module = [name, packageVersion, entrypoint].filter((part) => part !== undefined).join(" ")
      return [
        { text: `package ${module} (${packageManager})` },
        ...entries.flatMap(({ tool, sdk }) =>
          sdk === undefined ? [] : [{ text: `for ${tool} calls ${sdk.functionRef.join(".")}` }],
        ),
      ]
    }
    case "builtin":
      return [
        ...(body.builtin.fs === undefined ? [] : fsRows(body.builtin.fs, isTrusted)),
        ...entries.flatMap(({ tool, builtin }) => {
          if (builtin === undefined) return []
          const { hostId, database } = builtin
          const own = hostId === "caisson" || hostId.startsWith("caisson.")
          return [
            risky(
              `for ${tool} calls ${hostId} of the program that embeds the host`,
              own ? undefined : "no sandbox is around it",
            ),
            ...(database === undefined
              ? []
              : [
                  risky(
                    `asks the database ${database.name} at ${database.host}:${database.port}`,
                    database.tls ? undefined : "in the clear",
                  ),
                  database.sqlInput === undefined
                    ? { text: `by ${database.statement ?? ""}` }
                    : { text: `by what the input's ${database.sqlInput} says`, risk: "the caller writes the query" },
                ]),
          ]
        }),
      ]
    case "code":
      return [{ text: `its own functions serve its calls, as kind ${body.as}` }]
  }
}

const toolRows = (
  { id, major, mutates, approval, requires }: ToolContract,
  isTrusted: IsTrusted,
): readonly PageRow[] => [
  ...mutates.map(({ text, scope, class: cls }) =>
    risky(
      `${id}@${major} changes ${text}`,
      cls === "workspace"
        ? written(scope === "/" ? "**" : scope.slice(1).replace(/\/$/, "/**"), isTrusted)
        : "outside of the workspace: it cannot be undone",
    ),
  ),
  ...(mutates.length > 0 && approval.class === "auto"
    ? [{ text: `${id}@${major} changes things unasked`, risk: "approval: auto" }]
    : []),
  ...requires.secrets.map((slug) => ({ text: `${id}@${major} is given the secret ${slug}`, risk: "a secret" })),
  ...requires.tools.map((tool) => ({ text: `${id}@${major} calls ${tool}` })),
]

/** `own`: the digest of the files that it brings and has run, where it does. */
export const asksOf = (
  driver: DriverContract,
  tools: readonly ToolContract[],
  isTrusted: IsTrusted,
  own?: string,
): readonly PageRow[] => [
  { text: `kind ${driver.body.kind}, version ${driver.version}` },
  ...servedBy(driver, isTrusted),
  ...driver.egress.map(({ text, wildcard, protocol }) =>
    risky(`reaches ${text}`, wildcard ? "any name below it" : protocol === "tcp" ? "any protocol" : undefined),
  ),
  ...besideRows(driver),
  ...(own === undefined ? [] : [{ text: `runs files of its own, ${own}` }]),
  ...tools.flatMap((tool) => toolRows(tool, isTrusted)),
]

/** What keeps a driver from something: with it gone, more is allowed. */
const KEEPS = /^(?:never reads|is limited to) /

/** What came and what went, between the rows of two days. */
export const changesBetween = (before: readonly string[], now: readonly string[]): readonly PageRow[] => [
  ...now.filter((row) => !before.includes(row)).map((row) => ({ text: `+ ${row}`, risk: "new" })),
  ...before
    .filter((row) => !now.includes(row))
    .map((row) => risky(`- ${row}`, KEEPS.test(row) ? "it was kept from that" : undefined)),
]
