/**
 * The tour: three real sealed calls on a workspace of their own, each with its effects, denials and receipt.
 *
 * Guarantees: what it says happened was looked at from outside the sandbox (the workspace's digest before and after);
 * it ends with 0 only if every call ended as promised and the receipts verify. Leaves nothing behind.
 */
import { createHash } from "node:crypto"
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createHost } from "../host/index.ts"
import { verifyChain } from "../host/receipts/verify.ts"
import type { CallRequest, Envelope, Host } from "../host/types.ts"
import { exit } from "./exit.ts"
import { envelopeLines, valueText } from "./render/envelope.ts"
import { createTerminal, type Terminal } from "./terminal.ts"

interface Stop {
  readonly title: string
  readonly story: string
  readonly request: Pick<CallRequest, "tool" | "input">
  /** undefined: as promised; else what was not */
  readonly judge: (envelope: Envelope, unchanged: boolean) => string | undefined
}

const stops: readonly Stop[] = [
  {
    title: "A declared write lands",
    story: "tour.note may change notes/ and does just that.",
    request: { tool: "tour.note", input: { name: "monday", text: "The hull is dry." } },
    judge: (envelope, unchanged) => {
      if (!envelope.ok) return `the call failed with ${envelope.error.code}`
      if (unchanged) return "the declared write did not land"
      return envelope.effects.every((effect) => effect.declared && effect.committed)
        ? undefined
        : "an effect is not declared and committed"
    },
  },
  {
    title: "Writes outside the contract are undone",
    story: "tour.tidy promises the same, but also plants .bashrc, changes settings.conf and deletes ledger.csv.",
    request: { tool: "tour.tidy", input: { name: "tuesday", text: "All tidy." } },
    judge: (envelope, unchanged) => {
      if (envelope.ok || envelope.error.code !== "undeclared_write")
        return `undeclared_write was due, not ${envelope.ok ? "ok" : envelope.error.code}`
      return unchanged ? undefined : "the workspace changed"
    },
  },
  {
    title: "A dial to an undeclared host is stopped",
    story: "tour.lookup declares docs.example.com, and asks for telemetry.example.net instead.",
    request: { tool: "tour.lookup", input: {} },
    judge: (envelope, unchanged) => {
      if (!envelope.ok) return `the call failed with ${envelope.error.code}`
      if (
        !envelope.denied.some((denial) => denial.layer === "egress" && denial.target.includes("telemetry.example.net"))
      )
        return "the dial was not stopped"
      return unchanged ? undefined : "the workspace changed"
    },
  },
]

/** Files of the tour's workspace, and the commands that make the same ones. */
const furniture = { "ledger.csv": "date,amount\n2026-01-01,12\n", "settings.conf": "mode = safe\n" } as const

const furnish = (workspace: string): void => {
  mkdirSync(join(workspace, "notes"))
  for (const [name, text] of Object.entries(furniture)) writeFileSync(join(workspace, name), text)
}

const furnishingCommands = (): string[] => [
  'W=$(mktemp -d); mkdir "$W/notes"',
  ...Object.entries(furniture).map(([name, text]) => `printf '${text.replaceAll("\n", "\\n")}' > "$W/${name}"`),
]

const commandOf = ({ tool, input }: Stop["request"]): string =>
  `npx caisson call ${tool} --manifests tour --workspace "$W" --yes -i '${JSON.stringify(input)}'`

/** Names, kinds, modes and contents of everything below, as one digest. */
const digestOf = (folder: string): string => {
  const hash = createHash("sha256")
  const walk = (path: string, name: string): void => {
    const stat = lstatSync(path)
    hash.update(`${name}\0${stat.mode}\0`)
    if (stat.isDirectory()) for (const entry of readdirSync(path).sort()) walk(join(path, entry), `${name}/${entry}`)
    else if (stat.isFile()) hash.update(readFileSync(path))
  }
  walk(folder, "")
  return hash.digest("hex")
}

const visit = async (
  stop: Stop,
  number: number,
  host: Host,
  workspace: string,
  terminal: Terminal,
): Promise<boolean> => {
  const paint = terminal.paintResult
  const before = digestOf(workspace)
  terminal.result(`\n${paint.bold(`${number}. ${stop.title}`)}\n${paint.dim(stop.story)}`)
  terminal.result(`$ ${commandOf(stop.request)}`)
  const envelope = await terminal.during(
    host.call({ ...stop.request, workspace }, { approved: true }),
    stop.request.tool,
  )
  const unchanged = digestOf(workspace) === before
  if (envelope.ok) terminal.result(valueText(envelope.value))
  for (const line of envelopeLines(envelope, paint)) terminal.result(line)
  terminal.result(`workspace: ${unchanged ? "byte-identical to before" : "changed"}`)
  const problem = stop.judge(envelope, unchanged)
  terminal.result(problem === undefined ? paint.green("as promised") : paint.red(`NOT as promised: ${problem}`))
  return problem === undefined
}

const whoseReceipts =
  "Of the tour's own data folder, which goes when the tour ends: typed by you, this command looks at yours, which has receipts once you typed a call."

const conclude = async (host: Host, terminal: Terminal): Promise<boolean> => {
  const paint = terminal.paintResult
  terminal.result(`\n${paint.bold("The receipts")}\n${paint.dim(whoseReceipts)}\n$ npx caisson verify`)
  const verdict = await verifyChain(host.data)
  terminal.result(
    verdict.ok
      ? `${paint.green("ok")}  ${verdict.entries} entries, head ${verdict.head}`
      : paint.red(`bad  line ${verdict.line}: ${verdict.message}`),
  )
  return verdict.ok
}

const tour = async (terminal: Terminal): Promise<number> => {
  const scratch = mkdtempSync(join(tmpdir(), "caisson-tour-"))
  try {
    const workspace = join(scratch, "workspace")
    const data = join(scratch, "data")
    mkdirSync(workspace)
    mkdirSync(data, { mode: 0o700 })
    furnish(workspace)
    await using host = await createHost({ data, manifests: [fileURLToPath(new URL("../../tour", import.meta.url))] })
    terminal.result("Every command below can be typed in this clone; these make the workspace:")
    for (const command of furnishingCommands()) terminal.result(`$ ${command}`)
    let kept = true
    for (const [index, stop] of stops.entries())
      kept = (await visit(stop, index + 1, host, workspace, terminal)) && kept
    kept = (await conclude(host, terminal)) && kept
    return kept ? exit.ok : exit.hostBroken
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

const terminal = createTerminal()
terminal.result("caisson: three sealed calls, enforced by the operating system and judged against their contracts")
process.exitCode = await tour(terminal).catch((error: unknown) => {
  terminal.say(`caisson: ${error instanceof Error ? error.message : String(error)}`)
  if (error instanceof Error && "fix" in error) terminal.say(`fix: ${String(error.fix)}`)
  return exit.hostBroken
})
