/**
 * cargo, go and apt on this machine, and what they start.
 *
 * Guarantees: found by fixed places or by the operator's word alone, never by the caller's PATH. A toolchain that lies
 * elsewhere is shown whole, read-only, at a place of its own. Does not: run anything.
 */
import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join } from "node:path"
import type { OperatorConfig } from "../config/types.ts"
import type { FoundInterpreter } from "./interpreters.ts"

const FOLDERS = ["/usr/local/bin", "/usr/bin", "/usr/sbin", "/usr/local/sbin"]

export const systemProgram = (name: string): string | undefined =>
  FOLDERS.map((folder) => join(folder, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return statSync(file).isFile()
    } catch {
      return false
    }
  })

/** Those of them that are here: name → path. */
export const programsNamed = (names: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const file = systemProgram(name)
      return file === undefined ? [] : [[name, file] as const]
    }),
  )

/** A linker and what it is made of, by the names that compilers have for them. */
const LINKER = ["cc", "gcc", "ld", "ld.bfd", "ld.gold", "as", "ar", "ranlib", "strip", "sh"]
const SYSTEM = /^\/usr\/(?:local\/)?s?bin$/

interface Wanted {
  readonly name: "cargo" | "go"
  /** what the operator named */
  readonly file: string | undefined
  readonly inside: string
  readonly spawn: readonly string[]
  readonly hint: string
}

/** A folder of its own, with `bin` in it, or a program of the system's. */
const find = ({ name, file, inside, spawn, hint }: Wanted): FoundInterpreter => {
  const program = file ?? systemProgram(name)
  if (program === undefined)
    return { ok: false, reason: `there is no ${name} in ${FOLDERS.slice(0, 2).join(" or ")}`, fix: hint }
  if (!isAbsolute(program) || !existsSync(program))
    return {
      ok: false,
      reason: `${program} is no program that this host can start`,
      fix: `correct \`interpreters.${name}\` in caisson.yaml, or take it out`,
    }
  const others = programsNamed(spawn)
  const language = `${name} ${statSync(program).size} ${realpathSync(program)}`
  if (SYSTEM.test(realpathSync(dirname(program))))
    return { ok: true, value: { program, inside: program, bundles: {}, spawn: others, language } }
  const real = realpathSync(program)
  const root = dirname(dirname(real))
  return {
    ok: true,
    value: {
      program: real,
      inside: join(inside, "bin", basename(real)),
      bundles: { [root]: inside },
      spawn: others,
      language,
    },
  }
}

export const findCargo = ({ interpreters }: Pick<OperatorConfig, "interpreters">): FoundInterpreter =>
  find({
    name: "cargo",
    file: interpreters.cargo,
    inside: "/opt/rust",
    spawn: [...(interpreters.cargo === undefined ? ["rustc"] : []), ...LINKER],
    hint: "run `apt-get install cargo`, or name one as `interpreters.cargo` in caisson.yaml (not rustup's own launcher)",
  })

export const findGo = ({ interpreters }: Pick<OperatorConfig, "interpreters">): FoundInterpreter =>
  find({
    name: "go",
    file: interpreters.go,
    inside: "/opt/go",
    spawn: [],
    hint: "run `apt-get install golang-go`, or name one as `interpreters.go` in caisson.yaml",
  })
