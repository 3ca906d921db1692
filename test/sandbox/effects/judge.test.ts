import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { judgeInTurns, judgeWrites, type WritePolicy } from "../../../src/sandbox/effects/judging/judge.ts"
import { SENSITIVE } from "../../../src/sandbox/effects/judging/sensitive-table.ts"
import type { Effect, EffectKind } from "../../../src/sandbox/effects/types.ts"

const effectsOf = (lines: readonly string[]): Effect[] =>
  lines.map((line) => {
    const [kind, rest] = line.split(" ") as [EffectKind, string]
    const [from, path] = rest.includes(">") ? rest.split(">") : [undefined, rest]
    return { kind, path: path as string, ...(from === undefined ? {} : { from }) }
  })
const undeclared = (policy: Partial<WritePolicy>, lines: readonly string[]): string[] =>
  judgeWrites({ mutates: [], fsDeny: [], ...policy }, { effects: effectsOf(lines), bytes: 0 })
    .effects.filter((effect) => !effect.declared)
    .map((effect) => effect.path)

/** Of sensitive names, as a file system that folds case or drops characters would take them. */
const otherSpellings: string[] = [
  ".Git/config",
  ".GIT/hooks/x",
  ".g\u200cit/config",
  "git~1/config",
  ".git./config",
  ".git::$INDEX_ALLOCATION/config",
  ".g\u0131t/config",
  ".BashRC",
  "bashrc~1",
  "Claude.MD",
  "\uff43laude.md",
  "agent\u017f.md",
  ".GitHub/Workflows/x.yml",
  ".caisson-TX/x",
  ".hu\ufeffsky/x",
]

describe("a write set", () => {
  it("is clean when it is empty, whatever the contract", () => {
    expect(judgeWrites({ mutates: [], fsDeny: ["**"] }, { effects: [], bytes: 0 }).verdict).toBe("clean")
  })
  it("is undeclared as a whole when one effect is", () => {
    const judged = judgeWrites(
      { mutates: ["/a"], fsDeny: [] },
      { effects: effectsOf(["create a", "create b"]), bytes: 0 },
    )
    expect(judged.verdict).toBe("undeclared")
    expect(judged.effects.map((effect) => effect.declared)).toEqual([true, false])
  })

  const table: readonly [
    name: string,
    policy: Partial<WritePolicy>,
    effects: readonly string[],
    undeclared: readonly string[],
  ][] = [
    ["nothing declared", {}, ["create a"], ["a"]],
    [
      "everything declared",
      { mutates: ["/"] },
      ["create a", "modify b/c", "delete d", "rmdir e", "symlink f", "chmod g", "xattr h"],
      [],
    ],
    ["one segment only", { mutates: ["/notes/*"] }, ["create notes/a", "create notes/a/b"], ["notes/a/b"]],
    [
      "both scope and glob must agree",
      { mutates: ["/out/"], fsWrite: ["**/*.json"] },
      ["create out/a.json", "create out/a.txt", "create b.json"],
      ["out/a.txt", "b.json"],
    ],
    ["an empty list of globs grants nothing", { mutates: ["/"], fsWrite: [] }, ["create a"], ["a"]],
    [
      "a denial wins",
      { mutates: ["/"], fsDeny: ["**/*.pem"] },
      ["create a.pem", "create x/b.pem", "create c"],
      ["a.pem", "x/b.pem"],
    ],
    [
      "a denied folder denies what is below",
      { mutates: ["/"], fsDeny: ["secrets"] },
      ["mkdir secrets", "create secrets/a", "create secrets2"],
      ["secrets", "secrets/a"],
    ],
    [
      "a denied tree denies its folder",
      { mutates: ["/"], fsDeny: ["secrets/**"] },
      ["mkdir secrets", "rmdir secrets"],
      ["secrets", "secrets"],
    ],
    ["a scope that does not parse grants nothing", { mutates: ["../x", "a**b"] }, ["create x"], ["x"]],
    ["a denial that does not parse denies everything", { mutates: ["/"], fsDeny: ["a/../b"] }, ["create x"], ["x"]],
    ["a rename needs its old place", { mutates: ["/out/"] }, ["rename src/a>out/a"], ["out/a"]],
    ["a rename needs its new place", { mutates: ["/src/"] }, ["rename src/a>out/a"], ["out/a"]],
    ["a rename within a scope", { mutates: ["/src/"] }, ["rename src/a>src/b"], []],
    [
      "parents come with a declared file",
      { mutates: ["/out/x/*.json"] },
      ["mkdir out", "mkdir out/x", "create out/x/a.json"],
      [],
    ],
    [
      "a folder without a declared file in it",
      { mutates: ["/out/x/*.json"] },
      ["mkdir out", "mkdir out/x"],
      ["out", "out/x"],
    ],
    [
      "a folder beside the declared file",
      { mutates: ["/out/x/*.json"] },
      ["mkdir out", "mkdir out/x", "mkdir out/y", "create out/x/a.json"],
      ["out/y"],
    ],
    ["a deletion does not carry folders", { mutates: ["/out/*"] }, ["mkdir out", "delete out/a"], ["out"]],
    ["a subtree scope covers its folder", { mutates: ["/build/"] }, ["mkdir build", "rmdir build"], []],
    [
      "a subtree scope does not cover a file of that name",
      { mutates: ["/build/"] },
      ["create build", "symlink build"],
      ["build", "build"],
    ],
    [
      "a folder is not removed by a scope for its files",
      { mutates: ["/build/*"] },
      ["rmdir build", "delete build/a"],
      ["build"],
    ],
    [
      "wildcards do not reach git's hooks and settings",
      { mutates: ["/"] },
      ["create .git/hooks/pre-commit", "modify .git/config", "create .git/index", "create .git/modules/a/b/hooks/x"],
      [".git/hooks/pre-commit", ".git/config", ".git/modules/a/b/hooks/x"],
    ],
    [
      "inside git's folder a wildcard takes git's data and nothing else",
      { mutates: ["/**"] },
      [
        ...["objects/aa/bb", "refs/heads/x", "packed-refs", "index", "HEAD", "ORIG_HEAD", "FETCH_HEAD"],
        ...[
          "COMMIT_EDITMSG",
          "logs/HEAD",
          "objects/info/alternates",
          "objects/info/http-alternates",
          "info/attributes",
        ],
        ...["commondir", "modules/a/commondir", "worktrees/a/commondir", "modules/a/HEAD", "description", "new/thing"],
      ].map((path) => `create .git/${path}`),
      [
        ...["objects/info/alternates", "objects/info/http-alternates", "info/attributes", "commondir"],
        ...["modules/a/commondir", "worktrees/a/commondir", "modules/a/HEAD", "description", "new/thing"],
      ].map((path) => `.git/${path}`),
    ],
    [
      "a wildcard takes no link inside git's folder",
      { mutates: ["/**"] },
      ["symlink .git/logs/HEAD"],
      [".git/logs/HEAD"],
    ],
    [
      "a new git folder is not carried by the data in it",
      { mutates: ["/**"] },
      ["mkdir a", "mkdir a/.git", "create a/.git/HEAD"],
      ["a/.git"],
    ],
    [
      "git's other files need their whole path",
      { mutates: ["/.git/modules/**", "/.git/info/attributes"] },
      ["create .git/modules/a/config", "create .git/info/attributes"],
      [".git/modules/a/config"],
    ],
    [
      "folders on the way to a named place come with it",
      { mutates: ["/.config/git/config"] },
      ["mkdir .config", "mkdir .config/git", "create .config/git/config"],
      [],
    ],
    [
      "a folder on the way is harmless, a link in its place is not",
      { mutates: ["/**"] },
      ["mkdir .config", "create .config/app/x", "symlink .github", "create .github/CODEOWNERS"],
      [".github"],
    ],
    [
      "spellings that a case-blind file system takes for the same",
      { mutates: ["/**"] },
      otherSpellings.map((path) => `create ${path}`),
      otherSpellings,
    ],
    [
      "names that only begin alike",
      { mutates: ["/**"] },
      [
        "create .gitignore",
        "create .gitattributes",
        "create .github/CODEOWNERS",
        "create notes~",
        "create git~",
        "create agents.mdx",
      ],
      [],
    ],
    [
      "a repository below is as sensitive",
      { mutates: ["/"] },
      ["create sub/.git/hooks/x", "create sub/.git"],
      ["sub/.git/hooks/x", "sub/.git"],
    ],
    [
      "the git folder alone does not name its hooks",
      { mutates: ["/.git/"] },
      ["create .git/hooks/x", "create .git/HEAD"],
      [".git/hooks/x"],
    ],
    [
      "named sensitive places are granted",
      { mutates: ["/.git/hooks/*", "/.git/config"] },
      ["mkdir .git", "mkdir .git/hooks", "create .git/hooks/x", "modify .git/config"],
      [],
    ],
    [
      "shell and tool settings need their names",
      { mutates: ["**/*"] },
      [
        "create .bashrc",
        "create x/.envrc",
        "create .vscode/tasks.json",
        "create .mcp.json",
        "create .claude/settings.json",
        "create CLAUDE.md",
      ],
      [".bashrc", "x/.envrc", ".vscode/tasks.json", ".mcp.json", ".claude/settings.json", "CLAUDE.md"],
    ],
    [
      "named settings are granted",
      { mutates: ["/.vscode/", "**/.npmrc"] },
      ["mkdir .vscode", "create .vscode/a/b", "create p/.npmrc"],
      [],
    ],
    [
      "the name must be in the driver's globs as well",
      { mutates: ["/.npmrc"], fsWrite: ["**"] },
      ["create .npmrc"],
      [".npmrc"],
    ],
    [
      "paths of the host's own",
      { mutates: ["/"] },
      ["create .caisson/x", "create .caissonrc"],
      [".caisson/x", ".caissonrc"],
    ],
    [
      "a path that is not canonical",
      { mutates: ["/"] },
      ["create ../x", "create /etc/passwd", "create a//b"],
      ["../x", "/etc/passwd", "a//b"],
    ],
  ]
  it.each(table)("%s", (_name, policy, effects, expected) => {
    expect(undeclared(policy, effects)).toEqual(expected)
  })

  it.each(SENSITIVE.flatMap(({ places }) => places))(
    "%s is not declared by a wildcard, and is by its name",
    (place) => {
      for (const path of [place, `a/b/${place}`, place.toUpperCase(), `${place}/x/y`])
        expect(undeclared({ mutates: ["/**", "**/*", "/*/*", "/*"] }, [`create ${path}`])).toEqual([path])
      expect(undeclared({ mutates: [`/${place}`, `/${place}/**`] }, [`create ${place}`, `create ${place}/x`])).toEqual(
        [],
      )
    },
  )
  it("in a folder that looks like a bare repository needs its whole path", () => {
    const effects = effectsOf(["create docs/HEAD", "create docs/deep/x", "create docs2/x"])
    const judged = (mutates: string[], repositories: string[]): string[] =>
      judgeWrites({ mutates, fsDeny: [] }, { effects, bytes: 0, repositories })
        .effects.filter((effect) => !effect.declared)
        .map((effect) => effect.path)
    expect(judged(["/**", "/docs/**"], ["docs"])).toEqual(["docs/HEAD", "docs/deep/x"])
    expect(judged(["/docs/HEAD", "/docs/deep/x", "/**"], ["docs"])).toEqual([])
    expect(judged(["/**"], [""])).toEqual(["docs/HEAD", "docs/deep/x", "docs2/x"])
  })
  it("with a link to a sensitive place needs that place declared as well", () => {
    const effects: Effect[] = [
      { kind: "symlink", path: "notes/log", target: "../.bashrc" },
      { kind: "symlink", path: "notes/fine", target: "../docs/a" },
    ]
    const declaredBy = (mutates: string[]): boolean[] =>
      judgeWrites({ mutates, fsDeny: [] }, { effects, bytes: 0 }).effects.map((effect) => effect.declared)
    expect(declaredBy(["/**"])).toEqual([false, true])
    expect(declaredBy(["/**", "/.bashrc"])).toEqual([true, true])
  })

  it("with a refused effect is never clean", () => {
    const effects: Effect[] = [
      { kind: "special", path: "p", refused: "a fifo" },
      { kind: "mkdir", path: "d", refused: "setgid" },
      { kind: "create", path: "d/x" },
    ]
    expect(
      judgeWrites({ mutates: ["/"], fsDeny: [] }, { effects, bytes: 0 }).effects.map((effect) => effect.declared),
    ).toEqual([false, false, true])
  })
})

const name = fc.constantFrom("a", "b", ".git", "hooks", ".npmrc")
const somePath = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
const someGlob = fc
  .array(fc.oneof(name, fc.constantFrom("*", "**", "?")), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join("/"))
const globs = fc.array(someGlob, { maxLength: 3 })
const someEffects = fc.array(
  fc
    .record({
      kind: fc.constantFrom<EffectKind>("create", "modify", "delete", "mkdir", "rmdir", "rename"),
      path: somePath,
      from: somePath,
    })
    .map(({ kind, path, from }): Effect => (kind === "rename" ? { kind, path, from } : { kind, path })),
  { maxLength: 6 },
)
const declared = (policy: WritePolicy, effects: Effect[]): boolean[] =>
  judgeWrites(policy, { effects, bytes: 0 }).effects.map((effect) => effect.declared)

describe("the judge", () => {
  const many = Array.from({ length: 40_000 }, (_, n): Effect => ({ kind: "create", path: `a/b/c/${n}` }))
  const policy = { mutates: ["/a/**", "/**/*.x"], fsDeny: ["**/secret/**"] }

  it("lets other work go on while it judges a large write set", async () => {
    let turns = 0
    let going = true
    const other = (): void => {
      turns += 1
      if (going) setImmediate(other)
    }
    setImmediate(other)
    const judged = await judgeInTurns(policy, { effects: many, bytes: 0 }, 60_000, () => new Error("late"))
    going = false
    expect(judged).toEqual(judgeWrites(policy, { effects: many, bytes: 0 }))
    expect(turns).toBeGreaterThan(2)
  })
  it("gives up when its time is over", async () => {
    const judging = judgeInTurns(policy, { effects: many, bytes: 0 }, 0, () => new Error("late"))
    await expect(judging).rejects.toThrow("late")
  })
  it("takes one walk for a path that is as deep as any", { timeout: 20_000 }, () => {
    const deep = Array.from({ length: 400 }, (_, n): Effect => ({ kind: "create", path: `${"a/".repeat(1700)}${n}` }))
    const { verdict } = judgeWrites({ mutates: ["/**"], fsDeny: ["**/x/**", "y"] }, { effects: deep, bytes: 0 })
    expect(verdict).toBe("clean")
  })

  it("never takes back what more scopes or globs could only add to", () => {
    fc.assert(
      fc.property(globs, globs, globs, someGlob, someEffects, (mutates, fsWrite, fsDeny, more, effects) => {
        const before = declared({ mutates, fsWrite, fsDeny }, effects)
        const wider = declared({ mutates: [...mutates, more], fsWrite: [...fsWrite, more], fsDeny }, effects)
        return before.every((was, index) => !was || wider[index] === true)
      }),
      { numRuns: 2000 },
    )
  })
  it("never grants anything by denying more", () => {
    fc.assert(
      fc.property(globs, globs, someGlob, someEffects, (mutates, fsDeny, more, effects) => {
        const before = declared({ mutates, fsDeny }, effects)
        const narrower = declared({ mutates, fsDeny: [...fsDeny, more] }, effects)
        return narrower.every((is, index) => !is || before[index] === true)
      }),
      { numRuns: 2000 },
    )
  })
  it("never grants a sensitive place to patterns without literal names", () => {
    const wild = fc.array(
      fc.array(fc.constantFrom("*", "**", "?*"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/")),
      { maxLength: 3 },
    )
    const sensitive = fc
      .tuple(
        fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
        fc.constantFrom(".git/hooks/x", ".git/config", ".npmrc", ".vscode/a"),
      )
      .map(([up, end]) => [...up, end].join("/"))
    fc.assert(
      fc.property(
        wild,
        sensitive,
        (mutates, path) => declared({ mutates, fsDeny: [] }, [{ kind: "create", path }])[0] === false,
      ),
    )
  })
})
