/**
 * The model's side of the platform: what it is given, what it answers, and one that follows a script.
 *
 * A real one sends `tools` and `messages` to a model's API and returns what that asks for; nothing else changes.
 */
import type { Json } from "caisson/client"

export interface ToolForModel {
  readonly name: string
  readonly tool: string
  readonly description: string
  readonly parameters: Readonly<Record<string, Json>>
}
export type Wish =
  | { readonly use: string; readonly input: { readonly [name: string]: Json } }
  | { readonly answer: string }
export type Model = (messages: readonly Json[], tools: readonly ToolForModel[]) => Promise<Wish>

/** `./a.txt:3:TODO: paint`, a line each. */
const matchesIn = (message: Json | undefined): readonly string[] => {
  const { value } = (message ?? {}) as { value?: string }
  return (value ?? "").split("\n").filter((line) => line !== "")
}

/** Looks for `TODO`, writes what it found, and says how that went. */
export const scripted: Model = async (messages) => {
  if (messages.length === 1) return { use: "text__search", input: { pattern: "TODO" } }
  if (messages.length === 2) {
    const lines = matchesIn(messages[1]).map((line) => `- ${line}`)
    return { use: "file__write", input: { path: "open.md", content: `# Open\n\n${lines.join("\n")}\n` } }
  }
  const last = messages.at(-1) as { changed?: readonly string[]; error?: string }
  return { answer: last.error === undefined ? `done: ${last.changed?.join(", ")}` : `not done: ${last.error}` }
}
