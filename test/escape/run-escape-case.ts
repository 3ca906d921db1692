/**
 * One hostile program in one sandbox, and a verdict on it that any backend can be held to.
 *
 * Guarantees: besides what the case itself looks at, every case is checked for the same things from outside: no bait
 * reached, read or changed; nothing beside the workspace touched; the workspace as it was unless a commit was asked for
 * and allowed; no breach reported; the program got as far as it should.
 */
import { mkdirSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Ending, SandboxBackend } from "../../src/sandbox/backend.ts"
import { runOnce } from "../../src/sandbox/collect.ts"
import { jobOf, shapeOf } from "../../src/sandbox/profile.ts"
import { fingerprint, profileOf, removeFolder, temporaryFolder } from "../support/sealed.ts"
import type { EscapeCase, Place, Seen, Verdict } from "./escape-case.ts"
import type { Ground } from "./ground.ts"
import { commandOf, program } from "./programs.ts"

export const endingText = (ending: Ending): string => {
  switch (ending.by) {
    case "exit":
      return `exit ${ending.code}`
    case "signal":
      return `signal ${ending.signal}`
    case "limit":
      return `limit ${ending.limit}`
    case "infrastructure":
      return `infrastructure: ${ending.message}`
    default:
      return ending.by
  }
}
const unique = (words: readonly string[]): string[] => [...new Set(words)].sort()

const layOut = (ground: Ground): Place & { folder: string } => {
  const folder = temporaryFolder("escape")
  const [workspace, outside] = [join(folder, "workspace"), join(folder, "outside")]
  mkdirSync(join(workspace, "docs"), { recursive: true })
  mkdirSync(outside)
  writeFileSync(join(workspace, "a.txt"), "one\n")
  writeFileSync(join(workspace, "docs/b.txt"), "two\n")
  writeFileSync(join(outside, "untouched"), "as it was\n")
  return { ground, folder, workspace: realpathSync(workspace), outside: realpathSync(outside) }
}

const commitOf = async (seen: Omit<Seen, "commit">, escape: EscapeCase): Promise<Seen["commit"]> => {
  if (escape.commit === undefined && escape.beforeCommit === undefined) return "not asked"
  escape.beforeCommit?.(seen)
  const kept = await seen.exited.keepHome()
  const result = await seen.exited.commit()
  if (!kept.ok) return kept.reason
  return result.ok ? "committed" : result.reason
}

const commonBreaches = (seen: Seen, escape: EscapeCase): string[] => {
  const found = seen.stdout.split("\n").filter((line) => line.startsWith("BREACH"))
  const { exited, commit, ground } = seen
  const said = endingText(exited.ending)
  if (!(escape.endings ?? ["exit 0"]).includes(said)) found.push(`ended by ${said}: ${seen.stderr.slice(-600)}`)
  if (escape.cutShort === undefined && !seen.stdout.includes("tried"))
    found.push(`did not get to its end: ${seen.stderr.slice(-600)}`)
  if ((seen.stdout + seen.stderr).includes(ground.token)) found.push("read a secret of the host")
  const denied = exited.denied.map(({ reason, target }) => `${reason} ${target}`)
  for (const wanted of escape.denied ?? []) if (!denied.includes(wanted)) found.push(`not recorded: ${wanted}`)
  for (const { kind, path } of exited.writes.effects) {
    if (escape.effects?.includes(kind) !== true) found.push(`an effect that should not be: ${kind} ${path}`)
  }
  const commits = escape.commits ?? "failed"
  if (commit !== "not asked" && commits !== "any" && commit !== commits) found.push(`the commit ended as ${commit}`)
  return found
}

/** `run`: of the same source as the backend. */
export const runEscapeCase = async (
  backend: SandboxBackend,
  escape: EscapeCase,
  ground: Ground,
  run = runOnce,
): Promise<Verdict> => {
  const place = layOut(ground)
  const done = new AbortController()
  let meanwhile: Promise<void> | undefined
  try {
    await escape.prepare?.(place)
    const outside = fingerprint(place.outside)
    const before = fingerprint(place.workspace)
    const overrides = typeof escape.profile === "function" ? escape.profile(place) : escape.profile
    const profile = profileOf({ program: program[escape.language], ...overrides })
    const prepared = await backend.prepare(shapeOf(profile))
    if (!prepared.ok) throw new Error(`${prepared.control}: ${prepared.message}`)
    const source = typeof escape.source === "function" ? escape.source(place) : escape.source
    meanwhile = escape.meanwhile?.(place, done.signal)
    const job = jobOf(profile, { argv: commandOf(escape.language, source), workspace: place.workspace })
    const output = { stdin: new Uint8Array(), outputBytes: profile.limits.outputBytes }
    const exited = await run(prepared, job, output, new AbortController().signal)
    if (!exited.ok) {
      done.abort()
      await meanwhile
      const refused = { name: escape.name, ending: `refused ${exited.control}`, denied: [], effects: [] }
      const unchanged = escape.meanwhile !== undefined || fingerprint(place.workspace) === before
      const held =
        escape.endings?.includes(refused.ending) === true && unchanged && fingerprint(place.outside) === outside
      return { ...refused, commit: "not asked", breaches: held ? [] : [`refused: ${exited.message}`] }
    }
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")
    const partial = { ...place, exited, stdout: text(exited.stdout.bytes), stderr: text(exited.stderr.bytes) }
    const seen: Seen = { ...partial, commit: await commitOf(partial, escape) }
    done.abort()
    await meanwhile
    const breaches = [
      ...commonBreaches(seen, escape),
      ...((await escape.breaches?.(seen)) ?? []),
      ...(await ground.disturbed()),
    ]
    const changedByOthers = escape.meanwhile !== undefined || escape.beforeCommit !== undefined
    if (!changedByOthers && seen.commit !== "committed" && fingerprint(place.workspace) !== before)
      breaches.push("the workspace changed")
    if (fingerprint(place.outside) !== outside) breaches.push("something beside the workspace changed")
    await exited.discard()
    return {
      name: escape.name,
      ending: endingText(exited.ending),
      denied: unique(exited.denied.map(({ layer, reason }) => `${layer} ${reason}`)),
      effects: unique(exited.writes.effects.map(({ kind }) => kind)),
      commit: seen.commit,
      breaches,
    }
  } finally {
    done.abort()
    await meanwhile
    removeFolder(place.folder)
  }
}
