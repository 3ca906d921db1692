import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { noRoot, testNeeding } from "../support/needing.ts"
import { hostileSuite, kindsSuite, openFilesWorld } from "./files-cases.ts"

const kinds = ["turn-cli", "turn-sdk", "turn-mcp", "turn-own", "turn-builtin"]

describe("files of a contract, kind by kind", () => kindsSuite(kinds, openFilesWorld))
describe("files of a contract, tried by hostile programs and workspaces", () => hostileSuite(openFilesWorld))

it("lie where the host says, by whatever name the driver has for it", async () => {
  await using world = await openFilesWorld()
  world.reset()
  const envelope = await world.turn("upper", "turn-renamed")
  expect(envelope).toMatchObject({ ok: true, value: { said: expect.stringContaining(world.data) as string } })
  expect(world.text(`out/files.turn/${envelope.call}.txt`)).toBe("A SOURCE\n")
})

it("are told before a call, with their places and what may be changed", async () => {
  await using world = await openFilesWorld()
  world.reset()
  const report = await world.host.why({ tool: "files.turn", workspace: world.workspace, driver: "turn-cli" })
  expect(report.profile?.exchange).toMatchObject({
    inputs: [
      { name: "source", path: "in/source.txt", writable: false },
      { name: "draft", path: "in/draft.txt", writable: true },
    ],
    outputs: [
      { name: "draft" },
      { name: "result", path: expect.stringMatching(/^out\/files\.turn\//) as string },
      { name: "extra" },
    ],
  })
})

testNeeding("root hands over and writes no more than the owner of the workspace could", noRoot, async () => {
  await using world = await openFilesWorld()
  world.reset()
  const owner = 1234
  for (const path of [".", "in", "in/source.txt", "in/draft.txt"]) chownSync(world.at(path), owner, owner)
  for (const driver of ["turn-cli", "turn-builtin"]) {
    const envelope = await world.turn("upper", driver)
    expect(envelope.effects.at(-1)).toMatchObject({ kind: "create", committed: true })
  }
  writeFileSync(world.at("in/source.txt"), "root's own")
  chownSync(world.at("in/source.txt"), 0, 0)
  chmodSync(world.at("in/source.txt"), 0o600)
  for (const driver of ["turn-cli", "turn-builtin"])
    expect(await world.turn("upper", driver)).toMatchObject({
      ok: false,
      error: { code: "unauthorised", details: { reason: "forbidden" } },
    })
  world.reset()
  mkdirSync(world.at("out"))
  for (const path of [".", "in", "in/source.txt", "in/draft.txt"]) chownSync(world.at(path), owner, owner)
  for (const driver of ["turn-cli", "turn-builtin"])
    expect(await world.turn("upper", driver)).toMatchObject({ ok: true, effects: [] })
  expect(readdirSync(world.at("out"))).toEqual([])
})
