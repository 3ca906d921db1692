/**
 * AIP-29 `sandbox` blocks: reading one, and narrowing one by a tool's own (C-5).
 *
 * Guarantees: an absent part means the tightest reading; globs are canonical; a narrowing that asks for more than
 * its parent allows, in any part, is an error that names the part (AIP-29 §Inheritance). Deny lists only grow.
 */
import { checkEnvLiterals } from "../values/credentials.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import type { Report } from "../values/diagnostics.ts"
import { flag, object, optionalObject, text, texts } from "../values/fields.ts"
import { canonicalGlob, globCovers } from "../values/sandbox-globs.ts"
import type { JsonObject } from "../base-types.ts"
import type { CliSandbox } from "./cli.ts"

const FROM_HOST = ["PATH", "HOME", "TMPDIR"]

function globs(fs: JsonObject, key: string, path: string, report: Report): readonly string[] {
  return texts(fs, key).flatMap((written, i) => {
    const result = canonicalGlob(written)
    if (result.ok) return [result.glob]
    report.error("fs-glob", joinPath(`${path}.fs.${key}`, i), `\`${shown(written)}\`: ${result.message}`, result.fix)
    return []
  })
}

export function readSandbox(block: JsonObject, path: string, report: Report): CliSandbox {
  const fs = object(block, "fs")
  const exec = object(block, "exec")
  const env = object(block, "env")
  const set = object(env, "set")
  checkEnvLiterals(set, `${path}.env.set`, report)
  for (const name of FROM_HOST.filter((key) => Object.hasOwn(set, key))) {
    report.warn(
      "env-from-host",
      `${path}.env.set.${name}`,
      `\`${name}\` is always built by the host; this value is ignored`,
      "remove it",
    )
  }
  if (!flag(exec, "allow") && texts(exec, "spawn").length > 0) {
    report.warn(
      "spawn-without-allow",
      `${path}.exec.spawn`,
      "`exec.spawn` lists programs while `exec.allow` is false; none may run",
      "write `allow: true`, or remove the list",
    )
  }
  return {
    fs: {
      read: globs(fs, "read", path, report),
      write: globs(fs, "write", path, report),
      deny: globs(fs, "deny", path, report),
    },
    exec: { allow: flag(exec, "allow"), spawn: texts(exec, "spawn") },
    env: {
      pass: texts(env, "pass"),
      set: Object.fromEntries(
        Object.keys(set)
          .filter((key) => !FROM_HOST.includes(key))
          .map((key) => [key, text(set, key)]),
      ),
    },
    tty: { required: flag(object(block, "tty"), "required") },
  }
}

/** The effective sandbox of one tool: parts that the narrowing leaves out are the parent's. */
export function narrowSandbox(parent: CliSandbox, block: JsonObject, path: string, report: Report): CliSandbox {
  const own = readSandbox(block, path, report)
  const widened = (part: string, what: string): void =>
    report.error(
      "sandbox-widened",
      `${path}.${part}`,
      `the tool asks for more than its driver allows: ${what}`,
      "allow it in the driver's `sandbox`, or take it out here",
    )
  const subset = (part: string, asked: readonly string[], allowed: readonly string[]): void => {
    for (const name of asked) if (!allowed.includes(name)) widened(part, `\`${shown(name)}\``)
  }
  const has = (part: string, key?: string): boolean => {
    const given = optionalObject(block, part)
    return given !== undefined && (key === undefined || given[key] !== undefined)
  }
  for (const glob of own.fs.write)
    if (!parent.fs.write.some((wide) => globCovers(wide, glob))) widened("fs.write", `writing \`${shown(glob)}\``)
  for (const glob of own.fs.read) {
    if (![...parent.fs.read, ...parent.fs.write].some((wide) => globCovers(wide, glob)))
      widened("fs.read", `reading \`${shown(glob)}\``)
  }
  if (own.exec.allow && !parent.exec.allow) widened("exec.allow", "starting other programs")
  if (own.exec.allow) subset("exec.spawn", own.exec.spawn, parent.exec.spawn)
  subset("env.pass", own.env.pass, parent.env.pass)
  subset("env.set", Object.keys(own.env.set), [...Object.keys(parent.env.set), ...parent.env.pass])
  return {
    fs: {
      read: has("fs", "read") ? own.fs.read : parent.fs.read,
      write: has("fs", "write") ? own.fs.write : parent.fs.write,
      deny: [...new Set([...parent.fs.deny, ...own.fs.deny])],
    },
    exec: has("exec")
      ? {
          allow: own.exec.allow,
          spawn: has("exec", "spawn") ? own.exec.spawn : own.exec.allow ? parent.exec.spawn : [],
        }
      : parent.exec,
    env: { pass: has("env", "pass") ? own.env.pass : parent.env.pass, set: { ...parent.env.set, ...own.env.set } },
    tty: { required: parent.tty.required || own.tty.required },
  }
}
