/** What an answer can be instead of what was asked for: a refusal that the daemon told, or none that could be heard. */
import type { Problem } from "./api.ts"

/** The daemon refused the request, and says why: nothing of it was done. */
export class ProblemError extends Error {
  readonly problem: Problem
  readonly status: number
  constructor(problem: Problem) {
    super(problem.detail)
    this.name = "ProblemError"
    this.problem = problem
    this.status = problem.status
  }
}

/**
 * No answer came. `absent`: nobody listens there, and nothing was sent. `broken`: the connection ended before the answer
 * did. `silent`: it is open, and nobody says anything. `strange`: what answers is not the API. Only of `absent` it is
 * certain that nothing was done.
 */
export class Unreachable extends Error {
  readonly why: "absent" | "broken" | "silent" | "strange"
  constructor(why: Unreachable["why"], message: string) {
    super(message)
    this.name = "Unreachable"
    this.why = why
  }
}
