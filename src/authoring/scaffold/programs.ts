/**
 * The programs that a new driver begins with: the least that answers, for its author to replace.
 *
 * Assumes: names are identifiers, ids are of their grammar; both were checked.
 */
export const greeter = (name: string): string => `#!/bin/sh
# ${name} -- NAME: greets. It starts in the workspace and sees nothing else of this machine.
if [ "\${1-}" = --version ]; then echo "${name} 1.0.0"; exit; fi
[ "\${1-}" = -- ] && shift
echo "Hello, $1."
`

const greetingJs = (names: readonly string[]): string =>
  names.includes("name") ? "`Hello, ${name}.`" : `JSON.stringify({ ${names.join(", ")} })`

export const nodeModule = (
  names: readonly string[],
): string => `/** One call: what it is given are the contract's inputs, what it returns is the answer. */
${"export"} const run = ({ ${names.join(", ")} }) => ${greetingJs(names)}
`

const greetingPy = (names: readonly string[]): string =>
  names.includes("name") ? 'f"Hello, {name}."' : `str({${names.map((name) => `"${name}": ${name}`).join(", ")}})`

export const pythonModule = (
  names: readonly string[],
): string => `"""One call: what it is given are the contract's inputs, what it returns is the answer."""


def run(${names.join(", ")}):
    return ${greetingPy(names)}
`

export const embedder = (tool: string, names: readonly string[]): string => `/**
 * A program that embeds the host and gives it the function of ${tool}. Where the package \`caisson\` is installed:
 *   node embed.mjs '{"${names[0] ?? "name"}": "Ada"}'
 */
import { createHost } from "caisson"

const run = async ({ ${names.join(", ")} }) => ${greetingJs(names)}

await using host = await createHost({ manifests: [import.meta.dirname], builtins: { "${tool}": run } })
console.log(await host.call({ tool: "${tool}", input: JSON.parse(process.argv[2] ?? "{}") }))
`

/** A server of one tool, that speaks the Model Context Protocol in lines of JSON. */
export const pythonServer = (tool: string, names: readonly string[]): string => `#!/usr/bin/python3
"""An MCP server with one tool, on stdin and stdout, without dependencies."""
import json
import sys

TOOL = ${JSON.stringify(tool)}
NAMES = ${JSON.stringify(names)}


def greet(arguments):
    return f"Hello, {arguments['name']}." if "name" in arguments else json.dumps(arguments)


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": TOOL, "version": "1.0.0"},
        }
    if method == "tools/list":
        schema = {"type": "object", "properties": {name: {} for name in NAMES}, "required": NAMES}
        return {"tools": [{"name": TOOL, "description": "Greets.", "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": greet(params.get("arguments", {}))}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
`
