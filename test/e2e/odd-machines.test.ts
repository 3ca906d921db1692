/** Machines and settings that nobody thought of: each works, or says what is wrong and how to mend it. */
import { execFile } from "node:child_process"
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, test, describe } from "vitest"
import { describeNeeding, noRoot } from "../support/needing.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { mountBase } from "../../src/sandbox/namespace/mount-base.ts"
import type { Envelope } from "../../src/host/types.ts"
import { finish, prepared, removeFolder, temporaryFolder } from "../support/sealed.ts"

const asRoot = process.getuid?.() === 0
const command = fileURLToPath(new URL("../../bin/caisson.cjs", import.meta.url))
let folder = ""
let workspace = ""
beforeEach(() => {
  folder = temporaryFolder("odd")
  chmodSync(folder, 0o755)
  workspace = join(folder, "workspace")
  mkdirSync(workspace)
})
afterEach(() => removeFolder(folder))

/** One call by the command line, in a shell that sets the scene: `$@` is the command. */
const callIn = (scene: string, at = workspace, env: Readonly<Record<string, string>> = {}): Promise<Envelope> =>
  new Promise((resolve, reject) => {
    const input = JSON.stringify({ filter: ".", document: { a: 1 } })
    const words = [process.execPath, "--no-warnings", command, "call", "json.query", "--workspace", at, "-i", input]
    const all = { ...process.env, CAISSON_DATA: join(folder, "data"), ...env }
    const options = { env: all, timeout: 60_000, killSignal: "SIGKILL" } as const
    execFile("sh", ["-c", `${scene}; exec "$@"`, "sh", ...words, "--json"], options, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout) as Envelope)
      } catch {
        reject(new Error(`no envelope: ${error?.message ?? ""} ${stderr}`))
      }
    })
  })

test.for(["027", "077"])("a call runs under umask %s", async (mask) => {
  expect(await callIn(`umask ${mask}`)).toMatchObject({ ok: true, value: [{ a: 1 }] })
})

describeNeeding("folders that others mount things on", noRoot, () => {
  test.for(["/srv", "/mnt", "/opt", "/media"])("a workspace below %s is served", async (parent) => {
    const own = join(parent, `caisson-odd-${process.pid}`)
    mkdirSync(own, { recursive: true })
    try {
      expect(await callIn(":", own)).toMatchObject({ ok: true, value: [{ a: 1 }] })
    } finally {
      rmSync(own, { recursive: true })
    }
  })
  test("a driver's own files below /srv and /opt are there", async () => {
    const bundle = join("/srv", `caisson-bundle-${process.pid}`)
    const backend = createNamespaceBackend({ data: folder })
    mkdirSync(bundle, { recursive: true })
    writeFileSync(join(bundle, "words"), "from the bundle")
    try {
      const sandbox = await prepared(backend, { bundles: { [bundle]: "/opt/driver" } })
      expect((await finish(sandbox, { argv: ["/usr/bin/cat", "/opt/driver/words"], workspace })).stdout).toBe(
        "from the bundle",
      )
    } finally {
      await backend[Symbol.asyncDispose]()
      rmSync(bundle, { recursive: true })
    }
  })
  test("a base that others can write, or that is somebody else's, is not used, and it is said how to mend it", () => {
    const open = join(folder, "open")
    mkdirSync(open)
    chmodSync(open, 0o777)
    writeFileSync(join(folder, "file"), "")
    expect(mountBase(folder, 0, [open, join(folder, "file"), join(folder, "no/where")])).toMatchObject({
      ok: false,
      message: expect.stringMatching(/can be written by others.*is not a folder.*ENOENT/) as string,
      fix: expect.stringContaining("install -d -m 755") as string,
    })
    expect(mountBase(folder, 0, [open, join(folder, "good")])).toEqual({ ok: true, path: join(folder, "good") })
  })
})

test("a sandbox whose driver declares port 53 has that port beside its name server", async () => {
  const backend = createNamespaceBackend({ data: folder })
  try {
    const network = { proxyPort: 3128, transparentPorts: [53, 443], dns: true }
    const sandbox = await prepared(backend, { network })
    if (sandbox.channel === "none") throw new Error("no channel")
    const reached: string[] = []
    sandbox.channel.transparent.get(53)?.on("connection", (socket) => {
      reached.push(`declared ${socket.localAddress}`)
      socket.destroy()
    })
    sandbox.channel.dnsTcp?.on("connection", (socket) => {
      reached.push(`names ${socket.localAddress}`)
      socket.destroy()
    })
    const source =
      "import socket\nfor a in ('127.0.0.1', '198.18.0.9'):\n  s = socket.create_connection((a, 53)); s.recv(1)"
    const { exited, stderr } = await finish(sandbox, { argv: ["/usr/bin/python3", "-c", source], workspace })
    expect([exited.ending, stderr]).toEqual([{ by: "exit", code: 0 }, ""])
    expect(reached).toEqual(["names 127.0.0.1", "declared 198.18.0.9"])
  } finally {
    await backend[Symbol.asyncDispose]()
  }
})

test("a home below /proc is refused in words, at once", async () => {
  expect(await callIn("unset CAISSON_DATA", workspace, { HOME: "/proc" })).toMatchObject({
    ok: false,
    error: {
      code: "internal",
      message: expect.stringContaining("the data folder /proc/.caisson cannot be made") as string,
      hint: expect.stringContaining("CAISSON_DATA") as string,
    },
  })
})

/** The command in a mount namespace of its own whose data folder lies on a small disk, filled by `fill`. */
const onSmallDisk = (before: string): Promise<Envelope> => {
  const namespaces = asRoot ? "--mount" : "--user --map-root-user --mount"
  const disk = join(folder, "disk")
  mkdirSync(disk)
  const inner = `mount -t tmpfs -o size=16m tmpfs "${disk}" && mkdir -m 700 "${disk}/data" && ${before}; dd if=/dev/zero of="${disk}/fill" bs=1k 2>/dev/null; exec "$@"`
  return callIn(`set -- unshare ${namespaces} sh -c '${inner}' sh "$@"`, workspace, {
    CAISSON_DATA: join(disk, "data"),
  })
}

test("a full disk at the first call is named, with what to do", async () => {
  expect(await onSmallDisk("true")).toMatchObject({
    ok: false,
    error: {
      message: expect.stringContaining("the disk is full") as string,
      hint: expect.stringContaining("free disk space") as string,
    },
  })
})
test("a full disk at a later call is named, with what to do, and the call has its receipt", async () => {
  expect(await onSmallDisk('"$@" > /dev/null 2>&1')).toMatchObject({
    ok: false,
    error: {
      message: expect.stringContaining("the disk is full") as string,
      hint: expect.stringContaining("free disk space") as string,
    },
    receipt: expect.stringMatching(/^sha256:/) as string,
  })
})

describe("a workspace in which this user can write nothing", () => {
  /** In mounts of its own, where the workspace is a file system without writing. */
  const inReadOnly = async (...words: readonly string[]): Promise<Envelope> => {
    const own = process.getuid?.() === 0 ? "-m" : "-rm"
    const mounted = 'mount -t tmpfs none "$0" && mkdir "$0/sub" && mount -o remount,ro none "$0" && exec "$@"'
    const call = [process.execPath, "--no-warnings", command, "call", ...words, "--workspace", workspace, "--json"]
    const env = { ...process.env, CAISSON_DATA: join(folder, "data") }
    const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
      execFile("unshare", [own, "sh", "-c", mounted, workspace, ...call], { env }, (_error, out, err) =>
        resolve({ stdout: out, stderr: err }),
      )
    })
    try {
      return JSON.parse(stdout) as Envelope
    } catch {
      throw new Error(`no envelope: ${stderr}`)
    }
  }
  const input = '{"path":"a.txt","content":"x"}'

  test("is told before a tool that changes files is run, and not at its commit", async () => {
    expect(await inReadOnly("file.write", "--yes", "-i", input)).toMatchObject({
      ok: false,
      error: { code: "unauthorised", message: expect.stringContaining(workspace) },
      effects: [],
    })
  })
  test("serves a tool that changes none", async () => {
    const answer = await inReadOnly("json.query", "-i", '{"filter":".","document":{"a":1}}')
    expect(answer.ok ? "ok" : answer.error.code).not.toBe("unauthorised")
  })
})
