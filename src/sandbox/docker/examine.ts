/**
 * What `doctor` says of this backend: the engine's facts, the shared canaries, then those that concern containers.
 *
 * Guarantees: a control is `enforced` only if its canary ran in a real container of this engine and was stopped.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ControlReport, SandboxBackend, SandboxProfile, Unavailable } from "../backend.ts"
import { runOnce } from "../collect.ts"
import { examine } from "../doctor/examine.ts"
import { placeReport } from "../layers/prove-place.ts"
import { jobOf, shapeOf } from "../profile.ts"
import { containerCanaries, parseContainerFindings } from "./canaries.ts"
import type { ConnectedEngine } from "./connected-engine.ts"

const perl = "/usr/bin/perl"
const mebibyte = 2 ** 20
const profile: SandboxProfile = {
  executables: { program: perl, children: true, spawn: {}, bundles: {} },
  view: { read: ["**"], deny: [] },
  write: ["**"],
  env: { PATH: "/usr/bin", HOME: "/home/tool" },
  tty: false,
  network: "none",
  limits: {
    wallMs: 20_000,
    memoryBytes: 128 * mebibyte,
    pids: 32,
    diskBytes: 16 * mebibyte,
    outputBytes: 65_536,
    openFiles: 256,
  },
  required: [],
  files: {},
}

const facts = ({ info, engine, ownUsers }: ConnectedEngine): ControlReport[] => {
  const where = engine.endpoint.socketPath ?? `${engine.endpoint.tcp?.host}:${engine.endpoint.tcp?.port}`
  return [
    {
      control: "engine",
      state: "enforced",
      evidence: `${info.product} ${info.version}, API ${info.api}, at ${where} (${engine.endpoint.origin})`,
    },
    { control: "engine-cgroups", state: "enforced", evidence: `cgroup v${info.cgroup}, driver ${info.cgroupDriver}` },
    { control: "engine-storage", state: "enforced", evidence: info.storage },
    {
      control: "engine-user-namespaces",
      state: "enforced",
      evidence: info.usernsRemap
        ? "the engine remaps users; sandboxes opt out and run as a user that owns nothing here"
        : "not remapped; sandboxes run as a user that owns nothing here",
    },
    ownUsers
      ? { control: "users-apart", state: "enforced", evidence: "each sandbox has a user of its own" }
      : {
          control: "users-apart",
          state: "degraded",
          evidence:
            "sandboxes share one user, because /run/caisson-users cannot be used: calls can use up each other's inotify instances, pipe memory and keys",
          fix: "make /run/caisson-users a folder that only root can write",
        },
  ]
}

const examineContainer = async (backend: SandboxBackend): Promise<ControlReport[]> => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-doctor-"))
  try {
    await using prepared = await backend.prepare(shapeOf(profile)).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.control}: ${answer.message}`)
      return answer
    })
    const exited = await runOnce(
      prepared,
      jobOf(profile, { argv: [perl, "-e", containerCanaries], workspace: folder }),
      { stdin: new Uint8Array(), outputBytes: profile.limits.outputBytes },
      AbortSignal.timeout(60_000),
    )
    if (!exited.ok) throw new Error(`${exited.control}: ${exited.message}`)
    await using _ = exited
    return parseContainerFindings(Buffer.from(exited.stdout.bytes).toString("utf8"))
  } catch (error) {
    return [{ control: "container", state: "absent", evidence: (error as Error).message, fix: "see the message" }]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const examineControls = async (
  backend: SandboxBackend,
  connectedEngine: ConnectedEngine | Unavailable,
): Promise<readonly ControlReport[]> => {
  if ("ok" in connectedEngine)
    return [
      {
        control: connectedEngine.control,
        state: "absent",
        evidence: connectedEngine.message,
        fix: connectedEngine.fix,
      },
    ]
  return [
    ...facts(connectedEngine),
    placeReport(connectedEngine.layers),
    ...(await examine(backend)),
    ...(await examineContainer(backend)),
  ]
}
