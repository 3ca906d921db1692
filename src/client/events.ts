/**
 * What happens in a call, as it happens.
 *
 * Guarantees: each event once and in order, also over connections that break: the stream is opened again where it was. It ends
 * when the call has; a stream that cannot be had any more ends in `Unreachable`, a call that is not there in `ProblemError`.
 */
import type { IncomingMessage } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import type { Json } from "./api.ts"
import { routes } from "./api.ts"
import { type AskOptions, headersOf, pathOf, problemIn } from "./ask.ts"
import { Unreachable } from "./faults.ts"
import { clientLimits } from "./limits.ts"
import { type Place, send, textOf } from "./transport.ts"

export interface CallEvent {
  /** its number; absent of words about the stream itself, such as `missed` */
  readonly id?: number
  readonly type: string
  readonly data: { readonly [name: string]: Json }
}
export interface EventsOptions extends AskOptions {
  /** the number of the last event that one has */
  readonly after?: number
}

const eventOf = (block: string): CallEvent | undefined => {
  const fields = new Map<string, string>()
  for (const line of block.split("\n")) {
    const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line.replace(/\r$/, "")) ?? []
    if (name !== undefined && value !== undefined)
      fields.set(name, name === "data" && fields.has(name) ? `${fields.get(name)}\n${value}` : value)
  }
  const data = fields.get("data")
  if (data === undefined) return undefined
  const id = fields.get("id")
  return {
    ...(id === undefined ? {} : { id: Number(id) }),
    type: fields.get("event") ?? "message",
    data: JSON.parse(data) as CallEvent["data"],
  }
}

/** The blocks of one connection, until it ends; throws where it broke. Nothing for too long is broken too. */
async function* blocksOf(answer: IncomingMessage): AsyncGenerator<string> {
  answer.setEncoding("utf8")
  answer.setTimeout(clientLimits.streamStallMs.value, () => answer.destroy(new Error("not a word")))
  let text = ""
  for await (const piece of answer) {
    text += (piece as string).replaceAll("\r\n", "\n")
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end)
      text = text.slice(end + 2)
    }
    if (text.length > clientLimits.blockBytes.value) throw new Unreachable("strange", "one event is too long")
  }
}

const connect = async (place: Place, call: string, options: EventsOptions): Promise<IncomingMessage> => {
  const { method, path } = routes.callEvents
  const { after, signal } = options
  const answer = await send(place, {
    method,
    path: pathOf(path, { params: { id: call } }),
    headers: headersOf(after === undefined ? {} : { "last-event-id": String(after) }, options),
    ...(signal === undefined ? {} : { signal }),
  })
  if (answer.statusCode === 200) return answer
  throw problemIn(await textOf(answer), answer.statusCode ?? 0)
}

/** One connection's worth; true once the stream has ended, not broken. */
async function* once(place: Place, call: string, options: EventsOptions): AsyncGenerator<CallEvent, boolean> {
  let answer: IncomingMessage | undefined
  try {
    answer = await connect(place, call, options)
    for await (const block of blocksOf(answer)) {
      const event = eventOf(block)
      if (event !== undefined) yield event
    }
    return true
  } catch (error) {
    const isGone = error instanceof Unreachable && (error.why === "strange" || error.why === "silent")
    if (isGone || options.signal?.aborted === true || (answer === undefined && !(error instanceof Unreachable)))
      throw error
    return false
  } finally {
    answer?.destroy()
  }
}

export async function* eventsOf(place: Place, call: string, options: EventsOptions = {}): AsyncGenerator<CallEvent> {
  let { after } = options
  for (let tries = 0; ; tries += 1) {
    const stream = once(place, call, { ...options, ...(after === undefined ? {} : { after }) })
    try {
      let next = await stream.next()
      for (; next.done !== true; next = await stream.next()) {
        tries = 0
        after = next.value.id ?? after
        yield next.value
      }
      if (next.value) return
    } finally {
      await stream.return(false)
    }
    if (tries >= clientLimits.resumes.value)
      throw new Unreachable("broken", "the stream of events broke, and cannot be gone on with")
    await pause(clientLimits.resumeMs.value * 2 ** tries, undefined, {
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    })
  }
}
