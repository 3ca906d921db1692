import { describe, expect, it } from "vitest"
import { Jobs } from "../../src/daemon/jobs.ts"
import { daemonLimits } from "../../src/daemon/limits.ts"
import { RelayedPerson } from "../../src/daemon/relayed-person.ts"
import type { Caller } from "../../src/host/access/caller.ts"

const caller = (user: string, more: Partial<Caller> = {}): Caller => ({
  user,
  actor: user,
  how: "token",
  workspaces: "any",
  roles: ["caller"],
  mayApprove: false,
  ...more,
})
const untilAborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve("ended")))
const begin = (jobs: Jobs, who: Caller, mostMs = 60_000) => jobs.begin("login", who, mostMs, {}, untilAborted)

describe("jobs", () => {
  it("are so many of one user, and so many all together; one that ended makes room", async () => {
    const jobs = new Jobs()
    const alice = caller("alice")
    const own = Array.from({ length: daemonLimits.jobsOfOne.value }, () => begin(jobs, alice))
    expect(() => begin(jobs, alice)).toThrow(/too many/)
    const first = own[0]?.id ?? ""
    jobs.find("login", first, alice)?.cancel()
    await expect.poll(() => jobs.find("login", first, alice)?.ended).toBeDefined()
    expect(jobs.find("login", first, alice)?.result).toBe("ended")
    begin(jobs, alice)
    for (let n = daemonLimits.jobsOfOne.value; n < daemonLimits.jobs.value; n += 1) begin(jobs, caller(`user${n}`))
    expect(() => begin(jobs, caller("last"))).toThrow(/too many/)
    jobs.cancelAll()
  })

  it("are found by who began them alone, and as what they are", () => {
    const jobs = new Jobs()
    const { id } = begin(jobs, caller("alice"))
    expect(jobs.find("login", id, caller("alice"))).toBeDefined()
    expect(jobs.find("login", id, caller("alice", { actor: "olga", roles: ["act-for"] }))).toBeDefined()
    for (const other of [
      caller("bob"),
      caller("olga", { roles: ["operator", "act-for"] }),
      caller("alice", { tenant: "other" }),
      caller("alice", { actor: "bob" }),
    ])
      expect(jobs.find("login", id, other)).toBeUndefined()
    expect(jobs.find("install", id, caller("alice"))).toBeUndefined()
    jobs.cancelAll()
  })

  it("end when their time is over", async () => {
    const jobs = new Jobs()
    const { id } = begin(jobs, caller("alice"), 20)
    await expect.poll(() => jobs.find("login", id, caller("alice"))?.ended).toBeDefined()
  })
})

describe("a person behind the API", () => {
  it("is shown a program's words as text that steers nothing, however they are cut, and no more than so much", () => {
    using person = new RelayedPerson()
    const show = (text: string): void => person.person.terminal?.show(Buffer.from(text))
    show("a\u001b[31mred\u001b[0m\u001b]0;title\u0007\u001b")
    show("[2Jb\u009b1mc\u202edc\u0000\u0008\tü\n")
    expect(person.terminal).not.toMatch(/[^\P{C}\t\r\n]/u)
    expect(person.terminal).toContain("red")
    expect(person.terminal).toContain("\tü\n")
    show("x".repeat(daemonLimits.loginTerminalBytes.value + 1))
    expect(person.terminal).toBe("x".repeat(daemonLimits.loginTerminalBytes.value))
  })

  it("answers what is asked, also beforehand, and is asked nothing once they are gone", async () => {
    const person = new RelayedPerson()
    const { signal } = new AbortController()
    const ask = (id: string) => person.person.answer?.({ id, text: "?", type: "text" }, signal)
    expect(person.answer("early", "yes")).toBe(true)
    expect(await ask("early")).toBe("yes")
    const later = ask("later")
    expect(person.prompts.map(({ id }) => id)).toEqual(["later"])
    person.answer("later", "now")
    expect(await later).toBe("now")
    const never = ask("never")
    person[Symbol.dispose]()
    expect(await never).toBeUndefined()
    expect(person.prompts).toEqual([])
  })

  it("can open no more than so many pages, nor type or answer more than is taken", () => {
    using person = new RelayedPerson()
    for (let n = 0; n <= daemonLimits.loginPages.value; n += 1) person.person.open?.({ url: `u${n}`, from: "program" })
    expect(person.pages.map(({ url }) => url)[0]).toBe("u1")
    for (let n = 0; n < daemonLimits.loginAnswers.value; n += 1) expect(person.answer(`q${n}`, "x")).toBe(true)
    expect(person.answer("more", "x")).toBe(false)
    expect(person.answer("q0", "y")).toBe(true)
    expect(person.type("x".repeat(daemonLimits.loginTypedBytes.value))).toBe(true)
    expect(person.type("x")).toBe(false)
  })
})
