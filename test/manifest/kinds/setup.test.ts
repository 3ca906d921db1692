import { describe, expect, it } from "vitest"
import type { RunnerSpec, SetupStep } from "../../../src/manifest/types.ts"
import { asDriver, cliFront, errors, load, warnings } from "../from-text.ts"

const front = (steps: string): string => cliFront({ extra: `setup: [${steps}]` })
const setup = (steps: string): readonly SetupStep[] => asDriver(load("DRIVER.md", front(steps), "strict")).setup

describe("a set-up step", () => {
  it.each<[string, SetupStep]>([
    ["{ kind: cmd, id: a, cmd: x }", { kind: "cmd", id: "a", cmd: "x", timeoutMs: 60_000, interactive: false }],
    [
      "{ kind: cmd, id: a, description: d, cmd: x, interactive: true, timeout_ms: 500, skip_if: { cmd: y }, persist: { secret_slug: a-key } }",
      {
        kind: "cmd",
        id: "a",
        description: "d",
        cmd: "x",
        timeoutMs: 500,
        interactive: true,
        skipIf: { cmd: "y", exitCode: 0, timeoutMs: 5000 },
        persist: { to: "secret", slug: "a-key" },
      },
    ],
    ["{ kind: prompt, id: a, prompt: p }", { kind: "prompt", id: "a", prompt: "p", answer: { type: "text" } }],
    [
      "{ kind: prompt, id: a, prompt: p, type: boolean, default: true, persist: { env: A_B } }",
      {
        kind: "prompt",
        id: "a",
        prompt: "p",
        answer: { type: "boolean", default: true },
        persist: { to: "env", name: "A_B" },
      },
    ],
    [
      "{ kind: prompt, id: a, prompt: p, type: select, options: [x, y], default: y }",
      {
        kind: "prompt",
        id: "a",
        prompt: "p",
        answer: { type: "select", options: { from: "list", values: ["x", "y"] }, default: "y" },
      },
    ],
    [
      '{ kind: prompt, id: a, prompt: p, type: select, options: { cmd: list }, persist: { cmd: "set ${value}" } }',
      {
        kind: "prompt",
        id: "a",
        prompt: "p",
        answer: { type: "select", options: { from: "cmd", cmd: "list", timeoutMs: 30_000 } },
        persist: { to: "cmd", cmd: "set ${value}" },
      },
    ],
    [
      "{ kind: prompt, id: a, prompt: p, type: secret }",
      { kind: "prompt", id: "a", prompt: "p", answer: { type: "secret" } },
    ],
    ["{ kind: oauth, id: a, secret_slug: hub }", { kind: "oauth", id: "a", secretSlug: "hub" }],
    [
      "{ kind: external, id: a, url: 'https://x.test/new', callback: { param: code } }",
      { kind: "external", id: "a", url: "https://x.test/new", callback: { param: "code", timeoutMs: 600_000 } },
    ],
  ])("is typed: %s", (written, step) => {
    expect(setup(written)).toEqual([step])
  })
  it.each([
    [
      "an id that is used twice",
      "{ kind: cmd, id: a, cmd: x }, { kind: cmd, id: a, cmd: y }",
      "setup-duplicate @ setup[1].id",
    ],
    [
      "a secret for a default",
      "{ kind: prompt, id: a, prompt: p, type: secret, default: hunter2 }",
      "secret-value @ setup[0].default",
    ],
    [
      "a select without options",
      "{ kind: prompt, id: a, prompt: p, type: select }",
      "missing-field @ setup[0].options",
    ],
    [
      "a default that is no option",
      "{ kind: prompt, id: a, prompt: p, type: select, options: [x], default: z }",
      "not-one-of @ setup[0].default",
    ],
    ["a default of another type", "{ kind: prompt, id: a, prompt: p, default: 7 }", "wrong-type @ setup[0].default"],
    [
      "a boolean that is text",
      "{ kind: prompt, id: a, prompt: p, type: boolean, default: 'yes' }",
      "wrong-type @ setup[0].default",
    ],
    [
      "two places for one value",
      "{ kind: prompt, id: a, prompt: p, persist: { env: A, secret_slug: b-c } }",
      "out-of-range @ setup[0].persist",
    ],
    [
      "a variable that is no name",
      "{ kind: prompt, id: a, prompt: p, persist: { env: 'A=B' } }",
      "bad-value @ setup[0].persist.env",
    ],
    ["a page that is a script", "{ kind: external, id: a, url: 'javascript:alert(1)' }", "bad-value @ setup[0].url"],
    [
      "a page that an input chooses",
      '{ kind: external, id: a, url: "https://${input.x}.test/" }',
      "bad-value @ setup[0].url",
    ],
    ["a kind that is none", "{ kind: dance, id: a }", "not-one-of @ setup[0].kind"],
  ])("is refused with %s", (_what, steps, expected) => {
    const result = load("DRIVER.md", front(steps))
    expect(errors(result)).toEqual([expected])
    expect(JSON.stringify(result)).not.toContain("hunter2")
  })
  it.each([
    [
      "a wait of a year",
      "{ kind: cmd, id: a, cmd: x, timeout_ms: 31536000000 }",
      ["wait-too-long @ setup[0].timeout_ms"],
    ],
    [
      "a number no clock has",
      "{ kind: cmd, id: a, cmd: x, timeout_ms: 9007199254740991 }",
      ["wait-too-long @ setup[0].timeout_ms"],
    ],
    [
      "a value that is lost",
      "{ kind: prompt, id: a, prompt: p, persist: { cmd: set } }",
      ["persist-without-value @ setup[0].persist.cmd"],
    ],
    [
      "a step that comes later",
      '{ kind: cmd, id: a, cmd: "x ${input.b}" }, { kind: prompt, id: b, prompt: p }',
      ["setup-reference @ setup[0]"],
    ],
    ["options of a text", "{ kind: prompt, id: a, prompt: p, options: [x] }", ["options-unused @ setup[0].options"]],
    ["a step that comes before", '{ kind: prompt, id: b, prompt: p }, { kind: cmd, id: a, cmd: "x ${input.b}" }', []],
  ])("is warned of with %s", (_what, steps, expected) => {
    expect(warnings(load("DRIVER.md", front(steps)))).toEqual(expected)
  })
  it("waits no longer than this host does", () => {
    expect(setup("{ kind: cmd, id: a, cmd: x, timeout_ms: 9007199254740991 }")).toMatchObject([
      { timeoutMs: 3_600_000 },
    ])
  })
})

describe("a runner", () => {
  const runner = (text: string): RunnerSpec | undefined =>
    asDriver(load("DRIVER.md", cliFront({ extra: `runner: ${text}` }))).runner
  const plain = { form: "inline", engine: "subprocess", needs: { native: [], npm: [], pip: [] }, limits: {} }
  it.each([
    ["subprocess", plain],
    ["{}", plain],
    ["{ inline: { engine: in-process } }", { ...plain, engine: "in-process" }],
    ["docker", { ...plain, engine: "sandbox", backend: "docker" }],
    ["{ engine: firecracker }", { ...plain, engine: "sandbox", backend: "firecracker" }],
    [
      "{ engine: sandbox, image: py, needs: { language: python, native: [git], npm: [x@1], pip: [y] }, limits: { memory_mb: 1, timeout_ms: 2, cpu_ms: 3 } }",
      {
        form: "inline",
        engine: "sandbox",
        image: "py",
        needs: { language: "python", native: ["git"], npm: ["x@1"], pip: ["y"] },
        limits: { memoryMb: 1, timeoutMs: 2, cpuMs: 3 },
      },
    ],
    ["heavy", { form: "ref", ref: "heavy" }],
    ["{ ref: team/heavy }", { form: "ref", ref: "team/heavy" }],
    ["{ file: ./RUNNER.md }", { form: "file", file: "./RUNNER.md" }],
  ])("is typed: %s", (written, expected) => {
    expect(runner(written)).toEqual(expected)
  })
  it.each([
    ["{ ref: 7 }", "wrong-type @ runner.ref"],
    ["{ ref: a, file: b }", "one-form-only @ runner"],
    ["{ engine: moon }", "runner-engine @ runner.engine"],
    ["{ engine: sandbox, needs: { language: cobol } }", "not-one-of @ runner.needs.language"],
  ])("is refused: %s", (written, expected) => {
    expect(errors(load("DRIVER.md", cliFront({ extra: `runner: ${written}` })))).toEqual([expected])
  })
})
