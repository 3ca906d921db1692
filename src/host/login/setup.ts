/**
 * Set-up steps (AIP-29 §Setup), in their order, once for each driver, workspace and user.
 *
 * Guarantees: a step counts as done when it is, each by itself, so that what breaks off goes on where it was. Values go
 * where the step says and nowhere else: into the vault for this owner, or to a command, one word each, never read again
 * by a shell; a secret goes to no command line. A step that needs a person ends it with what is open, where nobody is there.
 */
import { slugOfEnv } from "../../manifest/contracts/secrets.ts"
import type { DriverContract } from "../../manifest/types.ts"
import { Secret } from "../secrets/secret.ts"
import type { LoginFlow, LoginMethod } from "./flow.ts"
import type { Person, Question } from "../person.ts"
import { loginLimits } from "./limits.ts"
import { withAll } from "./oauth/kept-tokens.ts"
import type { OwnDesk } from "./parts.ts"
import type { RanInHome } from "./run-in-home.ts"

type Step = DriverContract["setup"][number]
type Persist = NonNullable<Extract<Step, { persist?: unknown }>["persist"]>

export type SetupEnd =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** `needs-person`: nothing went wrong, somebody has to act */
      readonly why: "failed" | "needs-person" | "cancelled"
      readonly step: string
      readonly message: string
      readonly fix?: string
    }
type StepEnd =
  | { readonly ok: true; readonly value?: string; readonly secret?: boolean }
  | Omit<Extract<SetupEnd, { ok: false }>, "step">

/** What steps before this one gave, by their ids. */
type Values = ReadonlyMap<string, { readonly text: string; readonly secret: boolean }>

const failed = (message: string, fix?: string): StepEnd => ({
  ok: false,
  why: "failed",
  message,
  ...(fix === undefined ? {} : { fix }),
})
const needs = (what: string): StepEnd => ({ ok: false, why: "needs-person", message: `it needs a person ${what}` })
const cancelled: StepEnd = { ok: false, why: "cancelled", message: "it was cancelled" }

const REFERENCE = /\$\{\s*(input|secrets)\.([\w.-]+)\s*\}/g

/** Under which names set-up keeps something in the vault. */
export const setupSlugs = ({ setup }: DriverContract): readonly string[] =>
  setup.flatMap((step) => {
    if (step.kind === "oauth") return [step.secretSlug, withAll(step.secretSlug)]
    if (step.persist?.to === "env") return [slugOfEnv(step.persist.name)]
    return step.persist?.to === "secret" ? [step.persist.slug] : []
  })

export const referencesOf = (step: Step): readonly string[] => {
  const texts = [
    "cmd" in step ? step.cmd : "",
    "url" in step ? step.url : "",
    "persist" in step && step.persist?.to === "cmd" ? step.persist.cmd : "",
  ]
  return [...texts.join("\n").matchAll(REFERENCE)].flatMap(([, root, name = ""]) => (root === "input" ? [name] : []))
}

type Filled =
  | { readonly ok: true; readonly cmd: string; readonly env: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly end: StepEnd }

/** Values become variables of the command's environment, so that each stays one word whatever is in it. */
const fillCommand = (
  cmd: string,
  values: Values,
  own?: { readonly text: string; readonly secret: boolean },
): Filled => {
  const env: Record<string, string> = {}
  let wrong: StepEnd | undefined
  const put = (name: string, value: { readonly text: string; readonly secret: boolean } | undefined, told: string) => {
    if (value === undefined) wrong = failed(`\`${told}\` is not known`, "correct the step in the driver's manifest")
    else if (value.secret)
      wrong = failed(
        `\`${told}\` is a secret, which others on this machine would see on a command line`,
        "keep it with `persist.env` or `persist.secret_slug` instead",
      )
    else env[name] = value.text
    return `\${${name}}`
  }
  const filled = cmd
    .replaceAll(REFERENCE, (told, root: string, name: string) =>
      put(
        `CAISSON_INPUT_${Buffer.from(name).toString("hex")}`,
        root === "secrets" ? { text: "", secret: true } : values.get(name),
        told,
      ),
    )
    .replaceAll(/\$\{\s*value\s*\}/g, (told) => (own === undefined ? told : put("CAISSON_VALUE", own, told)))
  return wrong === undefined ? { ok: true, cmd: filled, env } : { ok: false, end: wrong }
}

const ranWell = (ran: RanInHome, timeoutMs: number): StepEnd => {
  if (!ran.ran)
    return ran.why === "cancelled" ? cancelled : failed(`its command could not be run: ${ran.message}`, ran.fix)
  if (ran.exit === 0) return { ok: true, value: ran.stdout.replace(/\r?\n$/, "") }
  if (ran.timedOut) return failed(`its command took longer than ${timeoutMs} ms`)
  const said = (ran.stderr.trim() === "" ? ran.stdout : ran.stderr).trim().slice(-loginLimits.failureChars.value)
  const reach = ran.unreachable.length === 0 ? "" : `; ${ran.unreachable.join(", ")} could not be reached`
  return failed(`its command exited with ${ran.exit ?? "a signal"}${reach}${said === "" ? "" : `: ${said}`}`)
}

const runCommand = async (desk: OwnDesk, step: Extract<Step, { kind: "cmd" }>, values: Values): Promise<StepEnd> => {
  const { terminal } = desk.person
  if (step.interactive && terminal === undefined) return needs("at a terminal")
  const filled = fillCommand(step.cmd, values)
  if (!filled.ok) return filled.end
  const { timeoutMs } = step
  const ran = await desk.run(
    {
      cmd: filled.cmd,
      env: filled.env,
      timeoutMs,
      keepIfWell: true,
      ...(step.interactive && terminal !== undefined ? { terminal } : {}),
    },
    desk.signal,
  )
  return ranWell(ran, timeoutMs)
}

type Options = NonNullable<Question["options"]>

const optionsOf = async (desk: OwnDesk, step: Extract<Step, { kind: "prompt" }>): Promise<Options | StepEnd> => {
  if (step.answer.type !== "select") return []
  const { options } = step.answer
  if (options.from === "list") return options.values.map((value) => ({ value, label: value }))
  const ran = await desk.run({ cmd: options.cmd, timeoutMs: options.timeoutMs }, desk.signal)
  const end = ranWell(ran, options.timeoutMs)
  if (!end.ok) return end
  const lines = (end.value ?? "").split(/\r?\n/).filter((line) => line.trim() !== "")
  return lines.slice(0, loginLimits.optionLines.value).map((line) => {
    const [value = "", label = value] = line.split("\t", 2)
    return { value, label }
  })
}

const defaultOf = ({ answer }: Extract<Step, { kind: "prompt" }>): string | undefined =>
  answer.type === "secret" || answer.default === undefined ? undefined : String(answer.default)

const askPerson = async ({ person, signal }: OwnDesk, question: Question): Promise<StepEnd> => {
  if (person.answer === undefined) return needs(`to answer \`${question.id}\``)
  const given = await person.answer(question, signal)
  if (given === undefined || signal.aborted) return cancelled
  const value = given === "" ? (question.default ?? "") : given
  if (value === "") return failed("it was not answered")
  if (value.length > loginLimits.answerChars.value || value.includes("\0"))
    return failed("the answer cannot be kept: it is too long, or holds a NUL")
  if (question.type === "boolean") {
    if (!/^(?:y|yes|true|n|no|false)$/i.test(value)) return failed("the answer is neither yes nor no")
    return { ok: true, value: /^(?:y|yes|true)$/i.test(value) ? "true" : "false" }
  }
  if (question.type === "select" && question.options?.every((option) => option.value !== value) === true)
    return failed("the answer is none of the choices")
  return { ok: true, value, secret: question.type === "secret" }
}

const prompt = async (desk: OwnDesk, step: Extract<Step, { kind: "prompt" }>): Promise<StepEnd> => {
  const options = await optionsOf(desk, step)
  if ("ok" in options) return options
  const fallback = defaultOf(step)
  return askPerson(desk, {
    id: step.id,
    text: step.prompt,
    type: step.answer.type,
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(step.answer.type === "select" ? { options } : {}),
  })
}

/** Where the page gives something back, the person types it. */
const external = async (desk: OwnDesk, step: Extract<Step, { kind: "external" }>, values: Values): Promise<StepEnd> => {
  const { person } = desk
  if (person.open === undefined || person.answer === undefined) return needs(`to open ${step.url}`)
  const url = step.url.replaceAll(REFERENCE, (_told, root: string, name: string) =>
    encodeURIComponent(root === "input" ? (values.get(name)?.text ?? "") : ""),
  )
  person.open({ url, from: "host" })
  if (step.persist === undefined)
    return askPerson(desk, { id: step.id, text: "Done there?", type: "boolean", default: "yes" })
  const param = step.callback?.param
  const text = param === undefined ? "What the page gave you" : `What the page gave you as ${param}`
  return askPerson(desk, { id: step.id, text, type: "secret" })
}

const oauth = async (
  desk: OwnDesk,
  methods: readonly LoginMethod[],
  { secretSlug }: Extract<Step, { kind: "oauth" }>,
  login: LoginFlow | undefined,
): Promise<StepEnd> => {
  // The login that comes after the set-up obtains it.
  if (login?.keeps?.includes(secretSlug) === true) return { ok: true }
  for (const method of methods) {
    const flow = method.oauthOf?.(desk.driver, secretSlug)
    if (flow === undefined) continue
    if (flow.needs.some((way: keyof Person) => desk.person[way] === undefined)) return needs("to sign in")
    const end = await flow.run(desk)
    if (end.ok) return { ok: true }
    if (end.why === "cancelled") return cancelled
    return end.why === "needs-person" ? needs("to sign in") : failed(end.message, end.fix)
  }
  return failed(
    `nothing says how \`${secretSlug}\` is obtained`,
    `run \`caisson secrets set ${secretSlug}\` instead, or ask the driver's author`,
  )
}

/** Where the step says that its value is kept. */
const keep = async (
  desk: OwnDesk,
  persist: Persist | undefined,
  value: { readonly text: string; readonly secret: boolean },
  values: Values,
): Promise<StepEnd> => {
  if (persist === undefined) return { ok: true }
  if (persist.to === "cmd") {
    const filled = fillCommand(persist.cmd, values, value)
    if (!filled.ok) return filled.end
    const timeoutMs = loginLimits.proofMs.value
    const ran = await desk.run({ cmd: filled.cmd, env: filled.env, timeoutMs, keepIfWell: true }, desk.signal)
    return ranWell(ran, timeoutMs)
  }
  const slug = persist.to === "env" ? slugOfEnv(persist.name) : persist.slug
  const set = await desk.kept.set(slug, new Secret(value.text))
  return set.ok ? { ok: true } : failed(set.message, set.hint)
}

const isDone = async (desk: OwnDesk, { skipIf }: Step): Promise<boolean> => {
  if (skipIf === undefined) return false
  const ran = await desk.run({ cmd: skipIf.cmd, timeoutMs: skipIf.timeoutMs }, desk.signal)
  return ran.ran && ran.exit === skipIf.exitCode
}

const doStep = (
  { desk, methods, login }: Pick<SetupRun, "desk" | "methods" | "login">,
  step: Step,
  values: Values,
): Promise<StepEnd> => {
  switch (step.kind) {
    case "cmd":
      return runCommand(desk, step, values)
    case "prompt":
      return prompt(desk, step)
    case "external":
      return external(desk, step, values)
    case "oauth":
      return oauth(desk, methods, step, login)
  }
}

interface SetupRun {
  readonly desk: OwnDesk
  readonly methods: readonly LoginMethod[]
  /** what the driver's users log in by when it is set up */
  readonly login?: LoginFlow
  /** in their order */
  readonly steps: readonly Step[]
  /** written down, durably */
  readonly done: (step: string, skipped: boolean) => Promise<void>
}

export const runSetup = async ({ steps, done, ...run }: SetupRun): Promise<SetupEnd> => {
  const { desk } = run
  const values = new Map<string, { readonly text: string; readonly secret: boolean }>()
  for (const step of steps) {
    if (desk.signal.aborted) return { ok: false, why: "cancelled", step: step.id, message: "it was cancelled" }
    desk.tell({ at: "setup", step: step.id, did: "begin" })
    if (await isDone(desk, step)) {
      await done(step.id, true)
      desk.tell({ at: "setup", step: step.id, did: "skipped" })
      continue
    }
    const end = await doStep(run, step, values)
    if (!end.ok) return { ...end, step: step.id }
    // What is kept as a secret is one, whoever gave it: a person who was asked, or a command.
    const isKept = "persist" in step && step.persist?.to === "secret"
    const value = { text: end.value ?? "", secret: end.secret === true || isKept }
    values.set(step.id, value)
    const kept = await keep(desk, "persist" in step ? step.persist : undefined, value, values)
    if (!kept.ok) return { ...kept, step: step.id }
    await done(step.id, false)
    desk.tell({ at: "setup", step: step.id, did: "done" })
  }
  return { ok: true }
}
