/** Every limit of the client, once: its value, and what happens at it. */
interface ClientLimit {
  readonly value: number
  readonly at: string
}
const limit = (value: number, at: string): ClientLimit => Object.freeze({ value, at })
const MiB = 1024 * 1024

export const clientLimits = Object.freeze({
  answerBytes: limit(64 * MiB, "a longer answer is not read: Unreachable"),
  blockBytes: limit(8 * MiB, "one event that is longer ends the stream of events"),
  signEveryMs: limit(5_000, "while an answer is waited for, the daemon is asked for a sign of life"),
  signMs: limit(10_000, "it gives none: Unreachable"),
  streamStallMs: limit(60_000, "a stream of events without a word, heartbeats included: it is opened again"),
  resumes: limit(3, "times that a stream of events is opened again without a new event in between; then Unreachable"),
  resumeMs: limit(250, "before it is opened again, each time twice as long"),
}) satisfies Record<string, ClientLimit>
