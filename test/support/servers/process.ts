/**
 * A server process of a test: started, waited for, and stopped by its own pid.
 *
 * Guarantees: resolves once the port answers, rejects with what the server said when it ends first; `stop` returns
 * when the process is gone. A server that refuses to be root runs as `nobody` where the test is root.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chownSync, mkdtempSync, realpathSync, rmSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const host = "127.0.0.1"

export interface Running extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  readonly folder: string
}
export interface ServerPlan {
  readonly name: string
  /** Given a free port and an empty folder of its own; may prepare files there. */
  readonly command: (port: number, folder: string) => readonly string[]
  /** as `nobody` where the test is root */
  readonly ordinary?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly stopSignal?: NodeJS.Signals
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, host)
  await once(server, "listening")
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === "string") throw new Error("no TCP address")
  return address.port
}

const isRoot = process.getuid?.() === 0
const nobody = (flag: "-u" | "-g"): number => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }))
/** Whom `asNobody` makes of root; undefined where the test is an ordinary user already. */
export const nobodyIds = (): { readonly uid: number; readonly gid: number } | undefined =>
  isRoot ? { uid: nobody("-u"), gid: nobody("-g") } : undefined
/** Words that make the rest of a command line run as `nobody`. */
export const asNobody = (): readonly string[] =>
  isRoot ? ["setpriv", `--reuid=${nobody("-u")}`, `--regid=${nobody("-g")}`, "--clear-groups"] : []

export const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = connect(port, host)
    probe.once("connect", () => resolve(true)).once("error", () => resolve(false))
    probe.once("connect", () => probe.destroy())
  })

export async function startServer({
  name,
  command,
  ordinary = false,
  env = {},
  stopSignal = "SIGTERM",
}: ServerPlan): Promise<Running> {
  const port = await freePort()
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `caisson-${name}-`)))
  if (ordinary && isRoot) chownSync(folder, nobody("-u"), nobody("-g"))
  const drop = (): void => rmSync(folder, { recursive: true, force: true })
  let child: ChildProcess
  try {
    const [program = "", ...args] = [...(ordinary ? asNobody() : []), ...command(port, folder)]
    child = spawn(program, args, {
      cwd: folder,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", LANG: "C.UTF-8", HOME: folder, ...env },
    })
  } catch (error) {
    drop()
    throw error
  }
  let said = ""
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)))
  const ended = new Promise<void>((resolve) =>
    child.once("exit", () => resolve()).once("error", (error) => resolve(void (said += error.message))),
  )
  const stop = async (): Promise<void> => {
    const dead = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null
    if (!dead()) child.kill(stopSignal)
    const timer = setTimeout(() => child.kill("SIGKILL"), 5_000)
    await ended
    clearTimeout(timer)
    drop()
  }
  const deadline = Date.now() + 30_000
  let over = false
  void ended.then(() => (over = true))
  while (!(await answers(port))) {
    if (over || Date.now() > deadline) {
      await stop()
      throw new Error(`${name} did not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { pid: child.pid ?? 0, port, folder, [Symbol.asyncDispose]: stop }
}
