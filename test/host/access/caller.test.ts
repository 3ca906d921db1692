import { describe, expect, it } from "vitest"
import { callerFault, processCaller } from "../../../src/host/access/caller.ts"

describe("a caller", () => {
  it("is the process itself where none is named: it owns the host, and any folder is its own", () => {
    expect(processCaller()).toMatchObject({ how: "process", workspaces: "any", mayApprove: true })
    expect(processCaller("bob")).toMatchObject({ user: "bob", actor: processCaller().user })
    expect(callerFault(processCaller())).toBeUndefined()
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, unknown, RegExp]>([
    ["no object", "ana", /not an object/],
    ["an unknown key", { ...processCaller(), role: ["caller"] }, /`role`.*did you mean `roles`/],
    ["no user", { ...processCaller(), user: undefined }, /caller.user/],
    ["an unknown way", { ...processCaller(), how: "letter" }, /caller.how/],
    ["a relative workspace", { ...processCaller(), workspaces: ["work"] }, /absolute/],
    ["an unknown role", { ...processCaller(), roles: ["root"] }, /caller.roles/],
    ["a vague answer on approval", { ...processCaller(), mayApprove: "yes" }, /mayApprove/],
  ])("is refused with %s", (_, given, said) => {
    expect(callerFault(given)).toMatch(said)
  })
})
