/** What tools of Amplifier's modules may do and may not, the same on each backend. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { CallEvent } from "../../src/host/events.ts"
import type { Envelope } from "../../src/host/types.ts"
import { digestOfFolder, openFolder, openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/amplifier")

const errorOf = (envelope: Envelope): unknown => (envelope.ok ? envelope : envelope.error)

/** `config`: what the backend needs of it. */
export const amplifierSuite = (backend: "namespace" | "docker", config: () => string): void => {
  let world: World
  let folder: string
  let modules: string
  beforeAll(async () => {
    folder = openFolder()
    modules = join(folder, "modules")
    cpSync(fixtures, modules, { recursive: true })
    const at = (name: string): string => JSON.stringify(join(modules, name))
    world = await openWorld(
      `${config()}
amplifier:
  - module: ${at("read_file.py")}
    tools: { read_file: { mutates: [] } }
  - module: ${at("bash.py")}
    exec: [sh, cat, ls, env]
    debug: true
    tools: { bash: { mutates: ["workspace:notes/**"], approval: on-mutate, timeout_ms: 60000 } }
  - module: ${at("odd.py")}
    output_chars: 1000
amplifier_hooks:
  - { module: ${at("hooks/guard.py")}, config: { words: [no-such-word-here] }, events: [tool:pre, tool:post] }
`,
      { backend },
    )
  }, 240_000)
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const undone = async (tool: string, input: object): Promise<Envelope> => {
    const before = digestOfFolder(world.workspace)
    const envelope = await world.call(tool, input)
    expect(digestOfFolder(world.workspace)).toBe(before)
    return envelope
  }
  const bash = (command: string): Promise<Envelope> => world.call("bash", { command })

  it("the seeds' two tools run unchanged, and the catalogue has their schemas", async () => {
    const tools = await world.host.tools()
    expect(tools.find(({ contract }) => contract.id === "read-file")).toMatchObject({
      contract: {
        name: "read_file",
        inputs: { properties: { path: { type: "string" } }, required: ["path"] },
        mutates: [],
        approval: { class: "auto" },
      },
      availability: { available: true },
    })
    expect(await world.call("read-file", { path: "README.md" })).toMatchObject({
      ok: true,
      value: { output: "read me\n", metadata: { path: "README.md", size: 8 } },
      effects: [],
    })
    const envelope = await bash("cat README.md; echo said > notes/said.txt")
    expect(envelope).toMatchObject({
      ok: true,
      value: { output: "read me\n" },
      effects: [{ kind: "create", path: "notes/said.txt", declared: true, committed: true }],
    })
    const [receipt] = readReceipts(world.data, { call: envelope.call })
    expect(JSON.stringify(receipt)).toContain('"amplifier_tool":"bash"')
  })
  it("what nobody annotated changes nothing, and a person approves every call of it", async () => {
    const tools = await world.host.tools()
    expect(tools.find(({ contract }) => contract.id === "throws")?.contract).toMatchObject({
      approval: { class: "always" },
      mutates: [],
      version: "0.0.0",
    })
    const asked = await world.host.call(
      { tool: "throws", input: {}, workspace: world.workspace },
      { caller: processCaller("alice") },
    )
    expect(errorOf(asked)).toMatchObject({ code: "approval_required" })
    expect(world.host.diagnostics().filter(({ rule }) => rule === "amplifier-closed")[0]).toMatchObject({
      path: expect.stringMatching(/^amplifier\[2\]\.tools/) as string,
      fix: expect.stringContaining("mutates") as string,
    })
  })
  it("path traversal and a shell find no key: their own checks do not matter", async () => {
    const key = join(world.data, "keys/audit-ed25519.pem")
    expect(existsSync(key)).toBe(true)
    const up = `../../../../../../../..${key}`
    for (const path of [key, up, "/etc/shadow", join(world.folder, "caisson.yaml"), "/proc/1/environ"]) {
      // What is there inside is the sandbox's own.
      const text = JSON.stringify(await undone("read-file", { path }))
      expect(text).not.toMatch(/PRIVATE KEY|root:[$*!]|amplifier_hooks|VITEST/)
    }
    const envelope = await undone("bash", {
      command: `cat ${key} ${up} ~/.ssh/id_rsa /etc/shadow; ls ${world.data}; env`,
    })
    const text = JSON.stringify(envelope)
    expect(text).not.toMatch(/PRIVATE KEY|VITEST|root:[$*!]/)
  })
  it("undoes what a shell writes elsewhere, and starts no program that nobody named", async () => {
    expect(errorOf(await undone("bash", { command: "echo x > stray.txt" }))).toMatchObject({
      code: "undeclared_write",
      hint: expect.stringContaining('tools: { bash: { mutates: ["workspace:PATH"] } }') as string,
    })
    const other = await undone("bash", { command: "perl -e 'print 1'" })
    expect(other.ok).toBe(false)
  })
  it("an error is told by the code of its type, its words in the details alone", async () => {
    expect(errorOf(await undone("read-file", { path: "ada.txt" }))).toMatchObject({
      code: "not_found",
      message: expect.not.stringContaining("ada.txt") as string,
      details: { type: "FileNotFoundError", message: expect.stringContaining("ada.txt") as string },
    })
    expect(errorOf(await undone("bash", { command: "exit 7" }))).toMatchObject({
      code: "upstream_error",
      details: { type: "CommandFailed", exit_code: 7 },
    })
    expect(errorOf(await undone("bash", { command: "rm -rf / --help" }))).toMatchObject({ code: "policy_violation" })
  })
  it.each([
    ["text", "output_invalid"],
    ["generator", "output_invalid"],
    ["not-bool", "output_invalid"],
    ["throws", "not_found"],
    ["unserializable", "output_parse_failed"],
    ["nan", "output_parse_failed"],
    ["forged", "upstream_error"],
    ["flood", "limit_exceeded"],
    ["deep", "upstream_error"],
    ["exits", "upstream_error"],
  ])("a tool that answers what none should is a failure, and the host goes on: %s", async (tool, code) => {
    expect(errorOf(await undone(tool, { text: "x" }))).toMatchObject({ code })
  })
  it("an output over its budget is cut with a note of how much was left out", async () => {
    for (const tool of ["huge", "huge-list"]) {
      const envelope = await undone(tool, {})
      const { output } = (envelope.ok ? envelope.value : {}) as { output: string }
      expect(output).toMatch(/\n\[\d+ more characters were left out: the budget of this tool's output is 1000\]$/)
      expect(output.length).toBeLessThan(1200)
    }
    expect(await undone("dictionary", {})).toMatchObject({ ok: true, value: { output: { rows: [1, 2] } } })
    expect(await undone("surrogate", {})).toMatchObject({ ok: true, value: { output: "? half" } })
  })
  it("a tool without a schema takes any input, one with a bad schema is not registered, nor one without a name", async () => {
    const tools = await world.host.tools()
    expect(tools.find(({ contract }) => contract.id === "no-schema")?.contract.inputs).toEqual({ type: "object" })
    expect(tools.some(({ contract }) => contract.id === "broken-schema")).toBe(false)
    const said = world.host.diagnostics().map(({ rule }) => rule)
    expect(said).toContain("amplifier-no-schema")
    expect(said).toContain("amplifier-module")
  })
  it("the events of a call are on its stream, the host's and the module's apart", async () => {
    const events: CallEvent[] = []
    const call = async (tool: string, input: object): Promise<readonly unknown[]> => {
      events.length = 0
      await world.host.call(
        { tool, input: input as never, workspace: world.workspace },
        { caller: processCaller("alice"), approved: true, onEvent: (event) => events.push(event) },
      )
      return events.flatMap((event) => (event.type === "progress" ? [event.value] : []))
    }
    expect(await call("bash", { command: "ls notes" })).toMatchObject([
      { event: "tool:pre", by: "host", tool_name: "bash", input: { command: "ls notes" } },
      { event: "tool:pre:debug", driver: "amplifier-bash@1" },
      { event: "tool:post", by: "host", result: { success: true } },
      { event: "tool:post:debug", input: { command: "ls notes" } },
    ])
    expect(await call("throws", {})).toMatchObject([
      { event: "tool:pre" },
      { event: "odd:mounted", by: "module", data: { tools: 14 } },
      { event: "tool:error", by: "host", error: { type: "FileNotFoundError" } },
    ])
  })
  it("is asked to stop when it is cancelled, and leaves nothing", async () => {
    const before = digestOfFolder(world.workspace)
    const cancel = new AbortController()
    const envelope = await world.host.call(
      {
        tool: "bash",
        input: { command: "echo x > notes/half.txt; cat /dev/zero > /dev/null" },
        workspace: world.workspace,
      },
      {
        caller: processCaller("alice"),
        approved: true,
        signal: cancel.signal,
        onEvent: (event) => {
          if (event.type === "progress") cancel.abort()
        },
      },
    )
    expect(errorOf(envelope)).toMatchObject({ code: "cancelled" })
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
}

/** Worlds of their own: one for each set of hooks. */
export const hookSuite = (backend: "namespace" | "docker", config: () => string): void => {
  const withHook = async (hook: string, run: (world: World) => Promise<void>): Promise<void> => {
    const at = (name: string): string => JSON.stringify(join(fixtures, name))
    await using world = await openWorld(
      `${config()}
amplifier:
  - { module: ${at("read_file.py")}, tools: { read_file: { mutates: [] } } }
amplifier_hooks:
  - { module: ${at(`hooks/${hook.split(" ")[0]}.py`)}, ${hook.split(" ").slice(1).join(" ")} }
`,
      { backend },
    )
    writeFileSync(join(world.workspace, "notes/kept.txt"), "guarded words\n")
    await run(world)
  }

  it("a hook of the operator's blocks a call before it runs, and one after it, and a call that it lets through runs", () =>
    withHook("guard config: { words: [secret] }, events: [tool:pre, tool:post]", async (world) => {
      expect(errorOf(await world.call("read-file", { path: "notes/secret.txt" }))).toMatchObject({
        code: "policy_violation",
        details: { event: "tool:pre", hook: "guard.py", message: "it names what is guarded" },
      })
      const events: CallEvent[] = []
      const after = await world.host.call(
        { tool: "read-file", input: { path: "notes/kept.txt" }, workspace: world.workspace },
        { caller: processCaller("alice"), approved: true, onEvent: (event) => events.push(event) },
      )
      expect(JSON.stringify(events)).toContain("HookDenied")
      expect(JSON.stringify(events)).not.toContain("guarded words")
      expect(errorOf(after)).toMatchObject({ code: "policy_violation", details: { event: "tool:post" } })
      expect(JSON.stringify(after)).not.toContain("guarded words")
      expect(await world.call("read-file", { path: "README.md" })).toMatchObject({ ok: true })
    }))
  it.each([
    ["throws", "failed"],
    ["hangs", "failed"],
    ["asks", "wants a person"],
    ["nonsense", "failed"],
    ["absent", "registers nothing"],
  ])("a hook that fails blocks: %s", (how, words) =>
    withHook(`failing config: { how: ${how} }, timeout_ms: 4000`, async (world) => {
      expect(errorOf(await world.call("read-file", { path: "README.md" }))).toMatchObject({
        code: "policy_violation",
        message: expect.stringContaining(words) as string,
      })
    }),
  )
  it("what a hook makes of the input is what the tool is given, where the contract takes it", async () => {
    await withHook("failing config: { how: rewrites, path: notes/old.txt }", async (world) => {
      expect(await world.call("read-file", { path: "README.md" })).toMatchObject({
        ok: true,
        value: { output: "old\n" },
      })
    })
    await withHook("failing config: { how: rewrites, path: 7 }", async (world) => {
      expect(errorOf(await world.call("read-file", { path: "README.md" }))).toMatchObject({ code: "policy_violation" })
    })
  })
  it("a mount that never returns and a clean-up that blocks are ended, and take nothing else down", async () => {
    const at = (name: string): string => JSON.stringify(join(fixtures, name))
    await using world = await openWorld(
      `${config()}
amplifier:
  - { module: ${at("never.py")} }
  - { module: ${at("gone.py")} }
  - { module: ${at("odd.py")}, config: { cleanup: slow }, tools: { dictionary: { mutates: [] } } }
  - { module: ${at("read_file.py")}, tools: { read_file: { mutates: [] } } }
`,
      { backend },
    )
    expect(world.host.unloaded().map(({ claims }) => claims.id)).toEqual([
      "broken-schema",
      "amplifier-never",
      "amplifier-gone",
    ])
    expect(await world.call("read-file", { path: "README.md" })).toMatchObject({ ok: true })
    expect(await world.call("dictionary", {})).toMatchObject({ ok: true })
    expect(readFileSync(join(world.workspace, "README.md"), "utf8")).toBe("read me\n")
  })
}
