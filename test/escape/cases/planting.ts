/** What a program leaves in its layer for somebody else to stumble over. */
import { existsSync, linkSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { judgeWrites } from "../../../src/sandbox/effects/index.ts"
import type { EscapeCase } from "../escape-case.ts"
import { quoted } from "../programs.ts"

const planted = (
  name: string,
  source: EscapeCase["source"],
  effects: readonly string[],
  more: Partial<EscapeCase> = {},
): EscapeCase => ({
  name,
  language: "python",
  source,
  commit: true,
  effects,
  ...more,
})

/** places whose content other programs run without asking */
const trusted = [
  ".git/hooks/pre-commit",
  ".git/modules/a/commondir",
  ".Git/config",
  ".bashrc",
  ".zlogin",
  ".envrc",
  ".vscode/tasks.json",
  ".npmrc",
  ".ssh/authorized_keys",
  ".config/autostart/x.desktop",
  ".github/workflows/x.yml",
  "AGENTS.md",
  "docs/.git/config",
  "bare/HEAD",
  "bare/config",
  "bare/objects/x",
  "bare/refs/x",
]

export const planting: readonly EscapeCase[] = [
  planted(
    "an absolute symlink to a file of the host is never committed",
    ({ ground }) => `
os.symlink(${quoted(ground.secretFile)}, "/workspace/out"); os.symlink("/etc/passwd", "/workspace/pw")`,
    ["symlink"],
  ),
  planted(
    "a symlink that climbs out of the workspace is never committed",
    `
os.symlink("../outside/untouched", "/workspace/up"); os.symlink("docs/../../outside", "/workspace/docs/winding"); os.symlink("..", "/workspace/dots")`,
    ["symlink"],
  ),
  planted(
    "a folder swapped for a symlink to the outside takes nothing along",
    ({ outside }) => `
os.unlink("/workspace/docs/b.txt"); os.rmdir("/workspace/docs"); os.symlink(${quoted(outside)}, "/workspace/docs")`,
    ["symlink", "delete", "rmdir"],
  ),
  planted(
    "names such as .. and slashes in disguise stay below the workspace",
    `
for name in ("..", ".", "a/../../outside/x"): must_fail("making " + name, lambda: os.mkdir("/workspace/" + name))
for name in (b"..\\x2foutside".replace(b"/", b"\\xe2\\x88\\x95"), b"...", b"\\xff\\xfe", b"new\\nline", b"-rf", b"..\\\\..\\\\x"): open(b"/workspace/" + name, "w").close()`,
    ["create"],
    { commits: "committed" },
  ),
  planted(
    "a hard link to a program or file of the system cannot be made",
    `
for path in ("/etc/passwd", "/usr/bin/python3.11", "/usr/lib/os-release"):
    for folder in ("/workspace", "/tmp"): must_fail("linking %s into %s" % (path, folder), lambda: os.link(path, folder + "/linked"))`,
    [],
    { commits: "committed" },
  ),
  planted(
    "writing one name of a hard-linked workspace file does not reach its name outside",
    `put("/workspace/shared", "owned")`,
    ["modify"],
    {
      commits: "committed",
      prepare({ workspace, outside }) {
        writeFileSync(`${outside}/original`, "original")
        linkSync(`${outside}/original`, `${workspace}/shared`)
      },
      breaches: ({ outside }) =>
        readFileSync(`${outside}/original`, "utf8") === "original" ? [] : ["the other name of the file changed"],
    },
  ),
  planted("a fifo is never committed", `os.mkfifo("/workspace/pipe")`, ["special"]),
  planted("a socket is never committed", `s = socket.socket(socket.AF_UNIX); s.bind("/workspace/sock"); s.listen()`, [
    "special",
  ]),
  planted(
    "set-id and sticky bits are never committed",
    `
os.chmod("/workspace/a.txt", 0o4755); os.mkdir("/workspace/sticky"); os.chmod("/workspace/sticky", 0o1777); put("/workspace/g", "x"); os.chmod("/workspace/g", 0o2755)`,
    ["chmod", "mkdir", "create"],
  ),
  {
    name: "file capabilities and overlay marks cannot be forged",
    language: "python",
    source: `
os.mkdir("/workspace/docs/sub"); put("/workspace/f", "x")
must_fail("a file capability", lambda: os.setxattr("/workspace/f", "security.capability", struct.pack("=5I", 0x02000001, 0xffffffff, 0, 0xffffffff, 0)))
must_fail("a trusted attribute", lambda: os.setxattr("/workspace/docs", "trusted.overlay.opaque", b"y"))
# Older kernels with the BPF security module let anybody set this; no overlay reads it, and no commit carries it.
may_fail(lambda: os.setxattr("/workspace/docs", "security.overlay.opaque", b"y"))
for name in ("opaque", "whiteout", "redirect", "metacopy", "origin"): may_fail(lambda: os.setxattr("/workspace/docs", "user.overlay." + name, b"y"))
for folder in ("/workspace", "/workspace/docs"): must_fail("a forged whiteout in " + folder, lambda: os.mknod(folder + "/gone", stat.S_IFCHR, 0))
may_fail(lambda: os.mknod("/tmp/w", stat.S_IFCHR, 0)); must_fail("moving a whiteout in", lambda: os.rename("/tmp/w", "/workspace/a.txt"))
if not os.path.exists("/workspace/docs/b.txt"): breach("the folder was made opaque")`,
    effects: ["mkdir", "create", "xattr"],
    breaches: ({ exited }) => [
      ...exited.writes.effects
        .filter(({ kind }) => kind === "delete")
        .map(({ path }) => `hidden by a forged mark: ${path}`),
      ...exited.writes.effects
        .filter(({ kind, refused }) => kind === "xattr" && refused === undefined)
        .map(({ path }) => `a mark could be committed: ${path}`),
    ],
  },
  {
    name: "git hooks, shell rc files and editor settings are told in the write set, and a wildcard does not declare them",
    language: "python",
    source: `
for path in ${JSON.stringify(trusted)}:
    os.makedirs(os.path.dirname("/workspace/" + path), exist_ok=True); put("/workspace/" + path, "evil")`,
    effects: ["create", "mkdir"],
    breaches({ exited }) {
      const { effects } = judgeWrites({ mutates: ["/**"], fsDeny: [] }, exited.writes)
      return trusted
        .filter((path) => effects.find((effect) => effect.path === path)?.declared !== false)
        .map((path) => `${path} passes as declared`)
    },
  },
  {
    name: "what lies in a folder that the program shut is told all the same",
    language: "python",
    source: `
os.mkdir("/workspace/shut"); put("/workspace/shut/inner", "x"); put("/workspace/shut/locked", "y"); os.chmod("/workspace/shut/locked", 0); os.chmod("/workspace/shut", 0)
os.chmod("/workspace/docs/b.txt", 0); os.chmod("/workspace/docs", 0); os.chmod("/workspace", 0)`,
    effects: ["mkdir", "create", "chmod"],
    breaches({ exited }) {
      const told = exited.writes.effects.map(({ path }) => path)
      return ["shut", "shut/inner", "shut/locked", "docs", "docs/b.txt"]
        .filter((path) => !told.includes(path))
        .map((path) => `not told: ${path}`)
    },
  },
  planted(
    "rc files in the home do not outlive the call",
    `
for name in (".bashrc", ".profile", ".ssh/authorized_keys", ".config/autostart/x.desktop"):
    os.makedirs(os.path.dirname("/home/tool/" + name), exist_ok=True); put("/home/tool/" + name, "evil")`,
    [],
    { commits: "committed" },
  ),
  planted(
    "rc files beside declared driver state do not outlive the call",
    `
put("/home/tool/.bashrc", "evil"); os.makedirs("/home/tool/.config/tool", exist_ok=True); put("/home/tool/.config/tool/state", "fine")`,
    [],
    {
      commits: "committed",
      prepare({ workspace }) {
        mkdirSync(`${workspace}/../home`)
      },
      profile: ({ workspace }) => ({ home: { dir: `${workspace}/../home`, keep: [".config/tool/**"] } }),
      breaches({ workspace }) {
        const home = `${workspace}/../home`
        return [
          ...(existsSync(`${home}/.bashrc`) ? ["an undeclared file of the home was kept"] : []),
          ...(existsSync(`${home}/.config/tool/state`) ? [] : ["declared state was not kept"]),
        ]
      },
    },
  ),
  planted(
    "the host's own transaction folder cannot be planted",
    `
os.makedirs("/workspace/deep/.Caisson-TX-1"); os.mkdir("/workspace/.caisson-tx"); put("/workspace/.caisson-tx/journal.json", "{}")`,
    ["mkdir", "create"],
    {
      breaches: ({ workspace }) =>
        [".caisson-tx", "deep/.Caisson-TX-1"]
          .filter((name) => existsSync(`${workspace}/${name}`))
          .map((name) => `a transaction folder appeared: ${name}`),
    },
  ),
  planted(
    "a commit keeps the mode that the program set and no more",
    `put("/workspace/run.sh", "#!/bin/sh"); os.chmod("/workspace/run.sh", 0o777)`,
    ["create"],
    {
      commits: "committed",
      breaches: ({ workspace }) =>
        (lstatSync(`${workspace}/run.sh`).mode & 0o7000) === 0 ? [] : ["special bits arrived"],
    },
  ),
]
