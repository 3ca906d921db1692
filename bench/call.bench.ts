/**
 * What one sealed call costs beside bare bubblewrap and, where installed, the peers; and what effects cost on a
 * small and on a large workspace. Options: `--rounds=N`.
 */
import { spawn, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createHost } from "../src/host/index.ts"
import { bar, interleave, printTable, ratioOf as ratio, type Subject } from "./measure.ts"

const rounds = Number(process.argv.find((word) => word.startsWith("--rounds="))?.slice(9) ?? 40)
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-bench-")))
const manifests = fileURLToPath(new URL("./manifests", import.meta.url))
const finished = (command: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH ?? "/usr/bin", HOME: process.env.HOME ?? "/" },
    })
    child.stdout.resume()
    child.stderr.resume()
    child.once("error", reject)
    child.once("close", (code) => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}`))))
  })
const bwrap = (...command: string[]): (() => Promise<void>) => {
  const view = [
    "--ro-bind",
    "/usr",
    "/usr",
    "--ro-bind",
    "/etc",
    "/etc",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
  ]
  return () => finished("/usr/bin/bwrap", ["--unshare-all", ...view, ...command])
}
const installed = (name: string): boolean => spawnSync("sh", ["-c", `command -v ${name}`]).status === 0
/** A peer takes part if its command runs `true` here. */
const peers = async (program: string, ...args: string[]): Promise<Subject[]> => {
  const found: Subject[] = []
  const offer = async (name: string, command: string, words: readonly string[]): Promise<void> => {
    if (!installed(command)) return
    try {
      await finished(command, words)
      found.push({ name, run: () => finished(command, words) })
    } catch {
      console.log(`  (${name} is installed but does not run here)`)
    }
  }
  await offer("srt (sandbox-runtime CLI)", "srt", [program, ...args])
  await offer("codex sandbox", "codex", ["sandbox", "linux", program, ...args])
  await offer("docker run --network none", "docker", [
    "run",
    "--rm",
    "--network",
    "none",
    "caisson-bench",
    program,
    ...args,
  ])
  return found
}
try {
  const workspace = join(folder, "workspace")
  mkdirSync(workspace)
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests] })
  const call = (tool: string, where: string) => async (): Promise<void> => {
    const result = await host.call({ tool, input: {}, workspace: where }, { approved: true })
    if (!result.ok) throw new Error(`${tool}: ${result.error.code} ${result.error.message}`)
  }
  const trueRows = await interleave(
    [
      { name: "bwrap --unshare-all", run: bwrap("/bin/true") },
      { name: "caisson host.call", run: call("bench.true", workspace) },
      ...(await peers("true")),
    ],
    rounds,
  )
  printTable("true", trueRows, "bwrap --unshare-all")
  bar("warm sealed true, by bwrap", ratio(trueRows, "caisson host.call", "bwrap --unshare-all"), 2)

  if (existsSync("/usr/bin/node") || existsSync("/usr/local/bin/node")) {
    const nodeRows = await interleave(
      [
        { name: "bwrap --unshare-all", run: bwrap("node", "-e", "0") },
        { name: "caisson host.call", run: call("bench.node", workspace) },
        ...(await peers("node", "-e", "0")),
      ],
      Math.ceil(rounds / 2),
    )
    printTable("node -e 0", nodeRows, "bwrap --unshare-all")
  }

  const workspaceOf = (files: number): string => {
    const at = join(folder, `files-${files}`)
    for (let group = 0; group < 100; group += 1) {
      const dir = join(at, `d${group}`)
      mkdirSync(dir, { recursive: true })
      for (let index = 0; index < files / 100; index += 1) writeFileSync(join(dir, `f${index}`), `${index}`)
    }
    return at
  }
  const [small, large] = [workspaceOf(1000), workspaceOf(50_000)]
  const effectRows = await interleave(
    [
      { name: "ten changes in 1 k files", run: call("bench.ten", small) },
      { name: "ten changes in 50 k files", run: call("bench.ten", large) },
    ],
    rounds,
  )
  printTable("effects, judged and committed", effectRows, "ten changes in 1 k files")
  bar(
    "ten changes in 50 k files, by 1 k files",
    ratio(effectRows, "ten changes in 50 k files", "ten changes in 1 k files"),
    1.1,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
