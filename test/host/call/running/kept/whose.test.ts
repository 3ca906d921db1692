/** Two calls may share a server only where all that decides what it is and may is the same. */
import { expect, it } from "vitest"
import { whoseServer } from "../../../../../src/host/call/running/kept/whose.ts"
import type { Sealed } from "../../../../../src/host/call/steps.ts"
import { Secret } from "../../../../../src/host/secrets/secret.ts"
import { programOf, sealedOf, value, worldOf } from "../../values.ts"

const sealed = value(await sealedOf(worldOf()))
const base: Sealed = { ...sealed, program: programOf() }
const argv = ["/usr/bin/server"]
const whose = (change: Partial<Sealed> = {}, words = argv) => whoseServer({ ...base, ...change }, words)
const secretOf = (text: string): Sealed["secrets"] => [
  { name: "TOKEN", slug: "token", value: new Secret(text), grantedBy: "x", bound: true } as never,
]
const folderOf = (more: object): Sealed["folder"] =>
  ({ ...base.folder, identity: { ...base.folder.identity, ...more } }) as never
const contractOf = (more: object): Sealed["driver"] => ({
  ...base.driver,
  contract: { ...base.driver.contract, source: { ...base.driver.contract.source, ...more } },
})

it("is the same for the same call, however long it may take", () => {
  const { limits } = base.profile
  const longer = { ...base.profile, limits: { ...limits, wallMs: limits.wallMs * 2 } }
  expect(whose({ profile: longer })).toEqual(whose())
  expect(whose({ call: "another" })).toEqual(whose())
})

type Row = readonly [string, keyof ReturnType<typeof whose>, Partial<Sealed>, (readonly string[])?]
const rows: readonly Row[] = [
  ["user", "tuple", { user: "somebody else" }],
  ["driver", "tuple", { driver: { ...base.driver, key: "other@1" } }],
  ["driver of that name from another file", "tuple", { driver: contractOf({ file: "/elsewhere/DRIVER.md" }) }],
  ["workspace", "tuple", { folder: folderOf({ ino: "1" }) }],
  ["folder at the same inode, made later", "tuple", { folder: folderOf({ birthNs: "1" }) }],
  ["manifest", "origin", { driver: contractOf({ digest: "sha256:other" }) }],
  ["command line", "origin", {}, ["/usr/bin/server", "--other"]],
  [
    "program at the same path",
    "origin",
    { program: { ...programOf(), identity: { ...programOf().identity, ino: 7 } } },
  ],
  ["view of the workspace", "shape", { profile: { ...base.profile, view: { read: ["a/**"], deny: [] } } }],
  ["network", "shape", { profile: { ...base.profile, network: "none", env: {} } }],
  ["memory limit", "shape", { profile: { ...base.profile, limits: { ...base.profile.limits, memoryBytes: 1 } } }],
  ["secret", "given", { secrets: secretOf("one") }],
]
it.each(rows.map(([what, part, change, words]) => ({ what, part, change, words: words ?? argv })))(
  "differs by $what",
  ({ part, change, words }) => {
    expect(whose(change, [...words])[part]).not.toBe(whose()[part])
  },
)

it("tells a rotated secret from the one before it, and shows neither", () => {
  const [one, other] = [whose({ secrets: secretOf("one") }), whose({ secrets: secretOf("other") })]
  expect(one.given).not.toBe(other.given)
  expect(JSON.stringify([one, other])).not.toContain("one")
})
