/** What a call within a call is given, and what it is told of. */
import { afterEach, describe, expect, it } from "vitest"
import { NestedCalls, nestingOf, type Made, tellChanged } from "../../../../src/host/call/running/nested.ts"
import { hostLimits } from "../../../../src/host/limits.ts"
import type { Sealed } from "../../../../src/host/call/steps.ts"
import type { Envelope } from "../../../../src/host/types.ts"
import { removeFolder } from "../../../support/remove-folder.ts"
import { scopes, sealedOf, toolOf, value, worldOf } from "../values.ts"

const made: ReturnType<typeof worldOf>[] = []
afterEach(() => {
  for (const { folder } of made.splice(0)) removeFolder(folder)
})

const answered: Envelope = { ok: true, value: 1, call: "01J", effects: [], denied: [], receipt: "sha256:0" }

/** A call whose program may ask for `other`, and what it then has made. */
const open = async (envelope: Envelope = answered) => {
  const tool = toolOf({ requires: { secrets: [], tools: ["other"] } })
  const place = worldOf({ tool })
  made.push(place)
  const asked: Made[] = []
  const nesting = nestingOf(undefined, async (within) => {
    asked.push(within)
    return envelope
  })
  const sealed = { ...value(await sealedOf(place, { approved: true })), regions: ["eu"], nesting }
  return { nested: new NestedCalls(place.core.data, sealed), asked, nesting, sealed, place }
}
const never = new AbortController().signal

describe("a call that another one's program asks for", () => {
  it("has the rights and the regions of that one, and neither its yes nor its people", async () => {
    const { nested, asked, sealed } = await open()
    expect(await nested.call({ tool: "other", input: { a: 1 } }, never)).toEqual({ ok: true, value: 1 })
    const [within] = asked
    expect(within?.caller).toBe(sealed.caller)
    expect(within?.approved).toBe(false)
    expect(within).not.toHaveProperty("ask")
    expect(within).not.toHaveProperty("elicit")
    expect(within?.request).toEqual({
      tool: "other",
      input: { a: 1 },
      workspace: sealed.request.workspace,
      context: { regionConstraint: ["eu"] },
    })
    expect(within?.within).toMatchObject({ parent: sealed.call, depth: 1 })
  })

  it("has the same key whenever the same attempt is made again, and another for another question", async () => {
    const keys = async (inputs: readonly number[]): Promise<readonly string[]> => {
      const { nested, asked } = await open()
      for (const a of inputs) await nested.call({ tool: "other", input: { a } }, never)
      return asked.map(({ operation }) => operation)
    }
    const first = await keys([1, 1])
    expect(await keys([1, 1])).toEqual(first)
    expect(new Set([...first, ...(await keys([2, 2]))]).size).toBe(4)
  })

  it("that may have changed something elsewhere is heard of by all above it", async () => {
    const { nested, asked, nesting } = await open()
    await nested.call({ tool: "other", input: {} }, never)
    const [child] = asked
    if (child === undefined) throw new Error("nothing was made")
    const { nested: deeper, asked: below, sealed } = await open()
    Object.assign(sealed, { within: child.within, nesting: { ...sealed.nesting, depth: 1 } })
    await deeper.call({ tool: "other", input: {} }, never)
    const [grandchild] = below
    tellChanged(grandchild ?? {}, toolOf({ mutates: scopes("external:mail"), idempotent: true }))
    tellChanged(grandchild ?? {}, toolOf({ mutates: scopes("workspace:/a"), idempotent: false }))
    expect(nesting.mayHaveChanged).toBe(false)
    tellChanged(grandchild ?? {}, toolOf({ mutates: scopes("external:mail"), idempotent: false }))
    expect([nesting.mayHaveChanged, sealed.nesting.mayHaveChanged]).toEqual([true, true])
  })

  it("is told of without a path of this machine, and of the host's own trouble without its words", async () => {
    const failed = (code: string, kind: string, message: string): Envelope =>
      ({ ...answered, ok: false, error: { code, class: kind, message, retryable: false, details: {} } }) as never
    const told = async (failure: (sealed: Sealed, data: string) => Envelope): Promise<string> => {
      const { sealed, place } = await open()
      const nesting = nestingOf(undefined, async () => failure(sealed, place.core.data))
      const answer = await new NestedCalls(place.core.data, { ...sealed, nesting }).call(
        { tool: "other", input: {} },
        never,
      )
      return answer.ok ? "" : answer.error.message
    }
    expect(await told(({ workspace }, data) => failed("not_found", "invalid", `no ${workspace}/a in ${data}`))).toBe(
      "no /workspace/a in (the host's data)",
    )
    expect(await told(() => failed("internal", "infrastructure", "EIO at /var/secret"))).toBe(
      "the host could not do it",
    )
  })

  it(`names no more than ${hostLimits.nestedDenials.value} tools that were refused`, async () => {
    const { nested, asked } = await open()
    for (let n = 0; n < 200; n += 1) await nested.call({ tool: `t${n}`, input: {} }, never)
    expect(nested.denials()).toHaveLength(hostLimits.nestedDenials.value)
    expect(asked).toEqual([])
  })

  it("is not made once the one that asked is over", async () => {
    const { nested, asked } = await open()
    await nested.end()
    expect(await nested.call({ tool: "other", input: {} }, never)).toMatchObject({ error: { code: "cancelled" } })
    expect(asked).toEqual([])
  })
})
