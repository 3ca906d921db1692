import { expect, it } from "vitest"
import { runSetup } from "../../../src/host/login/setup.ts"
import type { OwnDesk } from "../../../src/host/login/parts.ts"
import type { DriverContract } from "../../../src/manifest/types.ts"
import type { Secret } from "../../../src/host/secrets/secret.ts"
import { deskWith, ranWell } from "./desk.ts"

type Step = DriverContract["setup"][number]

it.each<[string, Step]>([
  [
    "a person typed as a secret",
    { kind: "prompt", id: "key", prompt: "Key?", answer: { type: "secret" }, persist: { to: "secret", slug: "a-key" } },
  ],
  [
    "a person typed, and the step keeps as a secret",
    { kind: "prompt", id: "key", prompt: "Key?", answer: { type: "text" }, persist: { to: "secret", slug: "a-key" } },
  ],
  [
    "a command made, and the step keeps as a secret",
    {
      kind: "cmd",
      id: "key",
      description: "d",
      cmd: "tool make",
      interactive: false,
      timeoutMs: 1000,
      persist: { to: "secret", slug: "a-key" },
    },
  ],
] as [string, Step][])("a value that %s is put into no command of a later step", async (_, step) => {
  const { desk, ran } = deskWith(() => ({ ...ranWell, stdout: "of-the-command\n" }), {
    person: { answer: async () => "of-the-person" },
  })
  const later = {
    kind: "cmd",
    id: "use",
    description: "d",
    cmd: "tool use ${input.key}",
    interactive: false,
    timeoutMs: 1000,
  } as Step
  const kept: string[] = []
  const own = {
    ...desk,
    kept: {
      ...desk.kept,
      set: async (_slug: string, value: Secret) => {
        kept.push(value.reveal())
        return { ok: true as const, value: undefined }
      },
    },
  } as unknown as OwnDesk
  const end = await runSetup({ desk: own, methods: [], steps: [step, later], done: async () => undefined })
  expect(end).toMatchObject({ ok: false, step: "use", message: expect.stringContaining("is a secret") as string })
  expect(kept).toHaveLength(1)
  expect(JSON.stringify(ran)).not.toContain(kept[0])
})
