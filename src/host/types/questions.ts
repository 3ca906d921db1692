/** What tools ask people. */
import type { JsonObject, JsonValue } from "../../manifest/types.ts"
import type { HostAnswer, ListOptions } from "./asking.ts"

/** What a tool asks a person, while nobody has answered. */
export interface QuestionListing {
  /** the call that asked first */
  readonly id: string
  /** `id@major` */
  readonly tool: string
  readonly user: string
  readonly message: string
  readonly input: JsonObject
  /** the JSON Schema that the answer fits */
  readonly form: JsonObject
  readonly asked: string
  readonly expires: string
}

export interface QuestionsOfHost {
  list(options?: ListOptions): Promise<readonly QuestionListing[]>
  /** A person's answer to one; the call that waits for it goes on. */
  answer(id: string, answer: JsonValue, options?: ListOptions): HostAnswer<undefined>
}
