/**
 * Prove each control of a backend with a canary that must fail. Nothing is assumed from configuration.
 *
 * Guarantees: a control is `enforced` only if its canary ran in a real sandbox of this backend and was stopped.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { CollectedSandbox, ControlReport, Limits, SandboxBackend, SandboxProfile } from "../backend.ts"
import * as canaries from "./canaries.ts"
import { runOnce } from "../collect.ts"
import { delegate } from "../group-advice.ts"
import { jobOf, shapeOf } from "../profile.ts"

const perl = "/usr/bin/perl"
const mebibyte = 1024 * 1024
/** A canary takes a second; on a starved machine a hundred. */
const canaryMs = 120_000
const canaryLimits: Limits = {
  wallMs: canaryMs,
  memoryBytes: 256 * mebibyte,
  pids: 64,
  diskBytes: 32 * mebibyte,
  outputBytes: 256 * 1024,
  openFiles: 256,
}

const profileFor = (
  overrides: Partial<Omit<SandboxProfile, "executables" | "limits">> & {
    children?: boolean
    limits?: Partial<Limits>
  } = {},
): SandboxProfile => ({
  executables: { program: realpathSync(perl), children: overrides.children ?? true, spawn: { perl }, bundles: {} },
  view: { read: ["**"], deny: [] },
  write: ["**"],
  env: { PATH: "/usr/bin", HOME: "/home/tool" },
  tty: overrides.tty ?? false,
  network: "none",
  limits: { ...canaryLimits, ...overrides.limits },
  required: [],
  files: {},
})

const listen = (server: Server, target: { port: number; host: string } | { path: string }): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(target, resolve)
  })

/** Advice where a control does not hold, by control. */
const advice: Readonly<Record<string, string>> = {
  "memory-limit": delegate,
  "process-limit": delegate,
}

type RunCanary = (source: string, profile: SandboxProfile) => Promise<CollectedSandbox>

export const examine = async (backend: SandboxBackend): Promise<ControlReport[]> => {
  if (!existsSync(perl))
    return [
      {
        control: "canaries",
        state: "absent",
        evidence: "perl is not installed, so no canary can run",
        fix: "sudo apt-get install perl-base",
      },
    ]
  const folder = mkdtempSync(join(tmpdir(), "caisson-doctor-"))
  const workspace = join(folder, "workspace")
  const reached: string[] = []
  const tcp = createServer(() => reached.push("tcp"))
  const abstract = createServer(() => reached.push("abstract"))
  const abstractName = `caisson-canary-${process.pid}`
  try {
    writeFileSync(join(folder, "bait"), "bait", { mode: 0o644 })
    mkdirSync(workspace)
    chmodSync(folder, 0o755)
    await listen(tcp, { port: 0, host: "127.0.0.1" })
    await listen(abstract, { path: `\0${abstractName}` })
    const address = tcp.address()
    const bait = {
      file: join(folder, "bait"),
      port: typeof address === "object" && address !== null ? address.port : 0,
      abstractName,
      unlisted: "/usr/bin/id",
    }
    const reports: ControlReport[] = []
    const run: RunCanary = async (source, profile) => {
      const prepared = await backend.prepare(shapeOf(profile))
      if (!prepared.ok) throw new Refused(prepared.control, prepared.message, prepared.fix)
      const exited = await runOnce(
        prepared,
        jobOf(profile, { argv: [perl, "-e", source], workspace }),
        { stdin: new Uint8Array(), outputBytes: profile.limits.outputBytes },
        AbortSignal.timeout(3 * canaryMs),
      )
      if (!exited.ok) throw new Refused(exited.control, exited.message, exited.fix)
      return exited
    }
    try {
      await tryAttempts(run, bait, workspace, reached, reports)
      await tryLimits(run, reports)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      reports.push({ control: error.control, state: "absent", evidence: error.message, fix: error.fix })
    }
    return reports
  } finally {
    tcp.close()
    abstract.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

class Refused extends Error {
  readonly control: string
  readonly fix: string
  constructor(control: string, message: string, fix: string) {
    super(message)
    this.control = control
    this.fix = fix
  }
}

const report = (
  control: string,
  held: boolean,
  evidence: string,
  weak: "absent" | "degraded" = "absent",
): ControlReport => ({
  control,
  state: held ? "enforced" : weak,
  evidence,
  ...(held
    ? {}
    : {
        fix:
          advice[control] ?? "do not run untrusted tools here; report this with the output of `caisson doctor --json`",
      }),
})

const tryAttempts = async (
  run: RunCanary,
  bait: canaries.Bait,
  workspace: string,
  reached: string[],
  reports: ControlReport[],
): Promise<void> => {
  await using exited = await run(canaries.attempts(bait), profileFor())
  const text = Buffer.from(exited.stdout.bytes).toString("utf8")
  const findings = canaries.parseFindings(text)
  if (exited.ending.by !== "exit" || exited.ending.code !== 0) {
    const said = Buffer.from(exited.stderr.bytes).toString("utf8").trim()
    throw new Refused(
      "sandbox",
      `the canary did not finish: ${JSON.stringify(exited.ending)} ${said}`,
      "see the message",
    )
  }
  for (const control of new Set(findings.map((finding) => finding.control))) {
    if (control === "workspace-writable") continue
    const own = findings.filter((finding) => finding.control === control)
    const broken = own.filter((finding) => !finding.held)
    reports.push(
      report(control, broken.length === 0, (broken.length > 0 ? broken : own).map((finding) => finding.saw).join("; ")),
    )
  }
  reports.push(
    report(
      "network-isolated-outside",
      reached.length === 0,
      reached.length === 0 ? "no connection arrived at the host's listeners" : `arrived: ${reached.join(", ")}`,
    ),
  )
  const named = exited.denied.some((denial) => denial.layer === "egress" && denial.target === "192.0.2.1:443")
  reports.push(
    report(
      "attempts-named",
      named,
      named ? "the dial to 192.0.2.1:443 is in `denied`" : "a stopped dial was not reported",
    ),
  )
  const seen = exited.writes.effects.some((effect) => effect.path === "canary" && effect.kind === "create")
  const landed = existsSync(join(workspace, "canary"))
  reports.push(
    report(
      "workspace-transactional",
      seen && !landed,
      landed
        ? "a write reached the workspace before it was judged"
        : seen
          ? "the write is in the call's layer and not in the workspace"
          : "the write was not seen",
    ),
  )
}

/** What stopped the canary was its time, not the control that it tried. */
const ranOut = ({ ending }: CollectedSandbox): boolean =>
  ending.by === "cancelled" || (ending.by === "limit" && ending.limit === "wall")
const unknown = (control: string): ControlReport => ({
  control,
  state: "absent",
  evidence: `the canary did not come to its end in ${canaryMs / 1000} s, so nothing was shown`,
  fix: "run it again when this machine is less busy",
})

const tryLimits = async (run: RunCanary, reports: ControlReport[]): Promise<void> => {
  const finding = (exited: CollectedSandbox, control: string): canaries.Finding | undefined =>
    canaries.parseFindings(Buffer.from(exited.stdout.bytes).toString("utf8")).find((found) => found.control === control)
  const ended = (exited: CollectedSandbox): string => JSON.stringify(exited.ending)
  const attempt = async (
    control: string,
    source: string,
    profile: SandboxProfile,
    judge: (exited: CollectedSandbox, found: canaries.Finding | undefined) => ControlReport,
  ): Promise<void> => {
    await using exited = await run(source, profile)
    reports.push(ranOut(exited) ? unknown(control) : judge(exited, finding(exited, control)))
  }
  await attempt("children-forbidden", canaries.forks, profileFor({ children: false }), (exited) =>
    report("children-forbidden", exited.ending.by === "exec-denied", `a fork ended the program: ${ended(exited)}`),
  )
  await attempt("memory-limit", canaries.eatsMemory, profileFor(), (exited, found) => {
    const byGroup = exited.ending.by === "limit" && exited.ending.limit === "memory"
    const stopped = found === undefined
    return report(
      "memory-limit",
      byGroup,
      byGroup
        ? "the tree was stopped at its limit"
        : stopped
          ? "each process is limited, the tree as a whole is not"
          : "4 GiB were allocated under a 256 MiB limit",
      stopped ? "degraded" : "absent",
    )
  })
  await attempt("process-limit", canaries.eatsProcesses, profileFor(), (exited, found) =>
    report("process-limit", found?.held ?? exited.ending.by === "limit", found?.saw ?? ended(exited)),
  )
  await attempt("disk-limit", canaries.eatsDisk, profileFor(), (exited, found) =>
    report("disk-limit", found?.held ?? exited.ending.by === "limit", found?.saw ?? ended(exited)),
  )
  {
    await using exited = await run(canaries.neverEnds, profileFor({ limits: { wallMs: 500 } }))
    reports.push(
      report(
        "deadline",
        exited.ending.by === "limit" && exited.ending.limit === "wall",
        `a tree that ignores signals ended: ${ended(exited)}`,
      ),
    )
  }
  await attempt("output-limit", canaries.floods, profileFor({ limits: { outputBytes: 65536 } }), (exited) =>
    report(
      "output-limit",
      exited.stdout.truncated && exited.stdout.bytes.length === 65536,
      `${exited.stdout.total} bytes printed, ${exited.stdout.bytes.length} kept`,
    ),
  )
  await attempt("terminal", canaries.asksForTerminal, profileFor({ tty: true }), (exited, found) =>
    report("terminal", found?.held === true, found?.saw ?? ended(exited)),
  )
}
