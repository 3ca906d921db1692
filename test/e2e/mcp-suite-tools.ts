/** The tools that the protocol's own suite asks a server for, as contracts: TOOL.md files, written beside their drivers. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

interface SuiteTool {
  /** of the driver in `speak.pl`; absent: the driver of jobs has it */
  readonly argv?: readonly string[]
  readonly outputs?: string
  readonly inputs?: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
  readonly mcp: Readonly<Record<string, unknown>>
  readonly mutates?: readonly string[]
  readonly timeoutMs?: number
}
const text = "{ type: string }"
const any = "{}"
const string = { type: "string" }
const named = (name: string, argv: readonly string[], more: Partial<SuiteTool> = {}): SuiteTool => ({
  argv,
  outputs: text,
  ...more,
  mcp: { name, ...more.mcp },
})
const blocks = { outputs: any, mcp: { content: "blocks" } }
const prompt = { outputs: any, mcp: { as: "prompt" } }
const name = { inputs: { name: string }, required: ["name"] }
const form = (key: string, message: string, ...inputs: readonly string[]) => ({ [key]: { message, inputs } })

const enums = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: {
    type: "string",
    oneOf: [
      { const: "value1", title: "First Option" },
      { const: "value2", title: "Second Option" },
    ],
  },
  legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["Option One", "Option Two"] },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: {
    type: "array",
    items: {
      anyOf: [
        { const: "value1", title: "First Choice" },
        { const: "value2", title: "Second Choice" },
      ],
    },
  },
}
const defaults = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
}
const capital = { capital_question: { sample: "What is the capital of France?", max_tokens: 100, input: "answer" } }
const roots = { client_roots: { roots: true, input: "roots" } }
const list = { type: "array" }

const tools: Readonly<Record<string, SuiteTool>> = {
  "suite.text": named("test_simple_text", ["say", "This is a simple text response for testing."]),
  "suite.image": named("test_image_content", ["image"], blocks),
  "suite.audio": named("test_audio_content", ["audio"], blocks),
  "suite.embedded": named("test_embedded_resource", ["resource"], blocks),
  "suite.mixed": named("test_multiple_content_types", ["mixed"], blocks),
  "suite.logging": named("test_tool_with_logging", ["log"]),
  "suite.logging-too": named("test_logging_tool", ["log"]),
  "suite.fail": named("test_error_handling", ["fail"]),
  "suite.progress": { outputs: text, mcp: { name: "test_tool_with_progress" } },
  "suite.sampling": named("test_sampling", ["say", "LLM response:", "${input.answer}"], {
    inputs: { prompt: string, answer: string },
    required: ["answer"],
    mcp: { ask: [{ said: { sample: "${input.prompt}", max_tokens: 100, input: "answer" } }] },
  }),
  "suite.missing": named("test_missing_capability", ["say", "${input.answer}"], {
    inputs: { answer: string },
    required: ["answer"],
    mcp: { ask: [capital] },
  }),
  "suite.elicitation": named("test_elicitation", ["say", "User response:", "${input.username}"], {
    inputs: { message: string, username: string, email: string },
    required: ["username", "email"],
    mcp: { ask: [form("who", "${input.message}", "username", "email")] },
  }),
  "suite.streaming": named("test_streaming_elicitation", ["say", "Hello"], {
    ...name,
    mcp: { ask: [form("who", "Name?", "name")] },
  }),
  "suite.defaults": named("test_elicitation_sep1034_defaults", ["say", "Elicitation completed"], {
    inputs: defaults,
    mcp: { ask: [form("all", "Please check", ...Object.keys(defaults))] },
  }),
  "suite.enums": named("test_elicitation_sep1330_enums", ["say", "Elicitation completed"], {
    inputs: enums,
    mcp: { ask: [form("all", "Please choose", ...Object.keys(enums))] },
  }),
  "suite.static-text": {
    argv: ["say", "This is the content of the static text resource."],
    outputs: text,
    mcp: { as: "resource", uri: "test://static-text", mime_type: "text/plain" },
  },
  "suite.static-binary": {
    argv: ["blob"],
    outputs: any,
    mcp: { as: "resource", uri: "test://static-binary", mime_type: "image/png" },
  },
  "suite.template": {
    argv: ["template", "${input.id}"],
    outputs: any,
    inputs: { id: string },
    required: ["id"],
    mcp: { as: "resource", uri: "test://template/{id}/data", mime_type: "application/json" },
  },
  "suite.prompt": named("test_simple_prompt", ["prompt", "This is a simple prompt for testing."], prompt),
  "suite.prompt-arguments": named(
    "test_prompt_with_arguments",
    ["prompt", "Prompt with arguments: arg1='${input.arg1}', arg2='${input.arg2}'"],
    {
      ...prompt,
      inputs: { arg1: { type: "string", enum: ["testValue1", "hello", "test"] }, arg2: string },
      required: ["arg1", "arg2"],
    },
  ),
  "suite.prompt-resource": named("test_prompt_with_embedded_resource", ["prompt-resource", "${input.resourceUri}"], {
    ...prompt,
    inputs: { resourceUri: string },
    required: ["resourceUri"],
  }),
  "suite.prompt-image": named("test_prompt_with_image", ["prompt-image"], prompt),
  "suite.prompt-asks": named("test_input_required_result_prompt", ["prompt", "In the context of ${input.context}"], {
    outputs: any,
    inputs: { context: string },
    required: ["context"],
    mcp: { as: "prompt", ask: [form("user_context", "What context should the prompt use?", "context")] },
  }),
  "suite.asks": named("test_input_required_result_elicitation", ["say", "Hello, ${input.name}!"], {
    ...name,
    mcp: { ask: [form("user_name", "What is your name?", "name")] },
  }),
  "suite.asks-model": named("test_input_required_result_sampling", ["say", "${input.answer}"], {
    inputs: { answer: string },
    required: ["answer"],
    mcp: { ask: [capital] },
  }),
  "suite.asks-roots": named("test_input_required_result_list_roots", ["say", "roots"], {
    inputs: { roots: list },
    required: ["roots"],
    mcp: { ask: [roots] },
  }),
  "suite.asks-state": named("test_input_required_result_request_state", ["say", "state-ok"], {
    inputs: { ok: { type: "boolean" } },
    required: ["ok"],
    mcp: { ask: [form("confirm", "Please confirm", "ok")] },
  }),
  "suite.asks-tampered": named("test_input_required_result_tampered_state", ["say", "state-ok"], {
    inputs: { ok: { type: "boolean" } },
    required: ["ok"],
    mcp: { ask: [form("confirm", "Please confirm", "ok")] },
  }),
  "suite.asks-many": named("test_input_required_result_multiple_inputs", ["say", "Hello, ${input.name}!"], {
    inputs: { name: string, answer: string, roots: list },
    required: ["name", "answer", "roots"],
    mcp: {
      ask: [
        {
          ...form("user_name", "What is your name?", "name"),
          greeting: { sample: "Generate a greeting", max_tokens: 50, input: "answer" },
          ...roots,
        },
      ],
    },
  }),
  "suite.asks-rounds": named("test_input_required_result_multi_round", ["say", "${input.name} likes ${input.color}"], {
    inputs: { name: string, color: string },
    required: ["name", "color"],
    mcp: {
      ask: [
        form("step1", "Step 1: What is your name?", "name"),
        form("step2", "Step 2: What is your favorite color?", "color"),
      ],
    },
  }),
  "suite.asks-able": named("test_input_required_result_capabilities", ["say", "${input.answer}"], {
    inputs: { name: string, answer: string },
    required: ["answer"],
    mcp: { ask: [{ ...form("user_name", "What is your name?", "name"), ...capital }] },
  }),
  "suite.new-tool": named("test_trigger_tool_change", ["contract", "grown.tool"], { mutates: ["workspace:/grown/**"] }),
  "suite.new-prompt": named("test_trigger_prompt_change", ["contract", "grown.prompt"], {
    mutates: ["workspace:/grown/**"],
  }),
  "suite.greet": named("greet", ["say", "Hello, ${input.name}!"], name),
  "suite.slow": named("slow_compute", ["sleep", "${input.seconds}"], {
    inputs: { seconds: { type: "integer" }, label: string },
    required: ["seconds"],
    mcp: { task: "may" },
    timeoutMs: 120_000,
  }),
  "suite.failing-job": named("failing_job", ["fail", "1"], { mcp: { task: "must" } }),
  "suite.with-task": named("test_tool_with_task", ["say", "Hello, ${input.name}!"], {
    ...name,
    mcp: { task: "must", ask: [form("user_name", "What is your name?", "name")] },
  }),
  "suite.confirm-delete": {
    outputs: text,
    inputs: { filename: string },
    required: ["filename"],
    mcp: { name: "confirm_delete", task: "may" },
    timeoutMs: 60_000,
  },
  "suite.multi-input": { outputs: text, mcp: { name: "multi_input", task: "may" }, timeoutMs: 60_000 },
  "suite.protocol-error": { outputs: text, mcp: { name: "protocol_error_job", task: "may" } },
  "suite.schema": named("json_schema_2020_12_tool", ["say", "ok"], {}),
}

const schemaTool = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { type: "object", properties: { street: string, city: string } } },
  properties: {
    name: string,
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
}

const writeFront = (file: string, front: Readonly<Record<string, unknown>>): void => {
  mkdirSync(join(file, ".."), { recursive: true })
  const lines = Object.entries(front).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  writeFileSync(file, `---\n${lines.join("\n")}\n---\n`)
}

/** A folder of manifests with all of them. */
export const writeSuiteTools = (folder: string): void => {
  mkdirSync(folder, { recursive: true })
  cpSync(join(import.meta.dirname, "../../fixtures/mcp-conformance"), folder, { recursive: true })
  cpSync(join(folder, "job/server.py"), join(folder, "absent/server.py"))
  for (const [id, tool] of Object.entries(tools)) {
    const { outputs = any, inputs = {}, required = [], mcp, mutates = [], timeoutMs = 20_000 } = tool
    const input = { type: "object", properties: inputs, ...(required.length > 0 ? { required } : {}) }
    writeFront(join(folder, "tools", id, "TOOL.md"), {
      name: id,
      id,
      description: "A tool of the suite.",
      version: "1.0.0",
      inputs: id === "suite.schema" ? schemaTool : input,
      outputs: outputs === text ? { type: "string" } : {},
      idempotent: true,
      mutates,
      approval: mutates.length > 0 ? "on-mutate" : "auto",
      risk_level: mutates.length > 0 ? 1 : 0,
      timeout_ms: timeoutMs,
      requires: { network: [] },
      metadata: { mcp },
    })
  }
  writeFront(join(folder, "DRIVER.md"), {
    name: "Speaks",
    id: "conformance-speaks",
    description: "A fixture that says one thing.",
    version: "1.0.0",
    kind: "cli",
    bin: "./speak.pl",
    install: [{ method: "vendored", path: "./speak.pl" }],
    version_check: { cmd: "./speak.pl --version", parse: "speak (\\d+\\.\\d+\\.\\d+)", range: ">=1.0.0" },
    sandbox: {
      network: { egress: [], ingress: [] },
      fs: { read: ["**"], write: ["grown/**"] },
      exec: { allow: false },
    },
    output: { default_format: "text", exit_codes: { "3": "on_purpose" } },
    implements: Object.entries(tools).flatMap(([id, { argv, outputs }]) =>
      argv === undefined
        ? []
        : [
            {
              tool: id,
              version: "^1.0.0",
              metadata: { cli: { argv, output_format: outputs === text ? "text" : "json" } },
            },
          ],
    ),
  })
}
