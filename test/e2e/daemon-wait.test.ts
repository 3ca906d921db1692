import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Lanes } from "../../src/host/call/admission/lanes.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { openWorld } from "./host-world.ts"

const COUNT = 200
const auto = "approvals: { on_mutate: auto }\n"

describe("calls that wait for their workspace", () => {
  it("two hundred at once append to one file, and all of them are committed", { timeout: 300_000 }, async () => {
    await using world = await openDaemonWorld(`${auto}serve: { limits: { calls: 300 } }\n`)
    const users = await Promise.all(["alice", "bob", "carol", "dave"].map((user) => world.as({ user })))
    const asked = Array.from({ length: COUNT }, async (_, index) => {
      const ask = users[index % users.length]
      const input = { verb: "append", args: ["notes/old.txt", `${index}\n`] }
      const body = { tool: "fixture.act", input, workspace: world.workspace }
      return ask?.("POST", "/v1/calls", body, { prefer: "wait=280" })
    })
    const answers = await Promise.all(asked)
    expect(answers.filter((answer) => answer?.status !== 200).map((answer) => answer?.body)).toEqual([])
    expect(answers[0]?.headers.get("preference-applied")).toBe("wait=280")
    const lines = readFileSync(join(world.workspace, "notes/old.txt"), "utf8").trimEnd().split("\n")
    expect(lines.slice(1).toSorted()).toEqual(Array.from({ length: COUNT }, (_, index) => String(index)).toSorted())
  })

  it("one that meets somebody else's change at its end runs again on what is there then, and leaves one receipt", async () => {
    await using world = await openWorld()
    const file = join(world.workspace, "notes/old.txt")
    const request = {
      tool: "fixture.act",
      input: { verb: "append", args: ["notes/old.txt", "call\n"] },
      workspace: world.workspace,
    }
    let questions = 0
    const approve = async (): Promise<boolean> => {
      questions += 1
      if (questions === 1) writeFileSync(file, "by hand\n")
      return true
    }
    expect(await world.host.call(request, { approve, wait: 60_000 })).toMatchObject({ ok: true })
    expect(readFileSync(file, "utf8")).toBe("by hand\ncall\n")
    expect(questions).toBe(2)
    questions = 0
    expect(await world.host.call(request, { approve })).toMatchObject({ ok: false, error: { code: "conflict" } })
    expect(readFileSync(file, "utf8")).toBe("by hand\n")
  })

  it("have their turns in the order they came, users in turn; one that is cancelled leaves the line", async () => {
    const lanes = new Lanes()
    const workspace = { path: "/w", dev: "1", ino: "2", birthNs: "0" }
    const { signal } = new AbortController()
    const order: string[] = []
    const cancel = new AbortController()
    const first = await lanes.enter(workspace, "a", signal)
    const turn = async (client: string, name: string, until = signal): Promise<void> => {
      using place = await lanes.enter(workspace, client, until)
      order.push(place === undefined ? `${name} left` : name)
    }
    const all = [
      turn("a", "a1"),
      turn("a", "a2"),
      turn("a", "a3", cancel.signal),
      turn("b", "b1"),
      turn("b", "b2"),
      turn("c", "c1"),
    ]
    cancel.abort()
    // Another workspace waits for none of them.
    using _other = await lanes.enter({ ...workspace, ino: "3" }, "a", signal)
    first?.[Symbol.dispose]()
    await Promise.all(all)
    expect(order).toEqual(["a3 left", "a1", "b1", "c1", "a2", "b2"])
  })

  it("more than a user or the daemon may have at once is refused with a time to come back in, and others are served", async () => {
    await using world = await openDaemonWorld(`${auto}serve: { limits: { calls: 2, calls_per_user: 1 } }\n`)
    const [alice, bob, carol] = await Promise.all(["alice", "bob", "carol"].map((user) => world.as({ user })))
    if (alice === undefined || bob === undefined || carol === undefined) throw new Error("three users")
    const act = (input: object): object => ({ tool: "fixture.act", input, workspace: world.workspace })
    const sleep = (name: string): object => act({ verb: "sleep", args: [`notes/${name}`] })
    const later = { prefer: "respond-async" }
    const first = await alice("POST", "/v1/calls", sleep("a"), later)
    expect(first.status).toBe(202)
    const second = await alice("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))
    expect(second).toMatchObject({
      status: 503,
      body: { code: "overloaded", detail: expect.stringContaining("this user") },
    })
    expect(second.headers.get("retry-after")).toMatch(/^\d+$/)
    const bobs = await bob("POST", "/v1/calls", sleep("b"), later)
    expect(bobs.status).toBe(202)
    expect(await carol("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).toMatchObject({
      status: 503,
      body: { code: "overloaded", detail: expect.stringContaining("the daemon") },
    })
    for (const [ask, made] of [
      [alice, first],
      [bob, bobs],
    ] as const) {
      const id = String(made.body["call"])
      expect((await ask("DELETE", `/v1/calls/${id}`)).status).toBe(202)
      await expect
        .poll(async () => (await ask("GET", `/v1/calls/${id}`)).body["state"], { timeout: 20_000 })
        .toBe("settled")
    }
    expect((await carol("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(200)
  })
})
