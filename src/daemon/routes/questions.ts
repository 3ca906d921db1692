/**
 * `/v1/questions`: what tools ask people, and a person's answer.
 *
 * Guarantees: who may see and answer one is the host's to say; a token made for an agent answers none.
 */
import type { JsonValue } from "../../manifest/types.ts"
import { orProblem } from "../http/problem.ts"
import { closed, idParams, listOf, moment, open, problems, text } from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const question = open({
  id: text,
  tool: text,
  user: text,
  message: text,
  input: { type: "object", additionalProperties: true },
  form: { type: "object", additionalProperties: true },
  asked: moment,
  expires: moment,
})

export const questionRoutes = ({ app, host, callerOf }: Routes): void => {
  const tags = ["questions"]
  app.get(
    "/v1/questions",
    {
      schema: {
        operationId: "listQuestions",
        summary: "What tools ask people and nobody has answered",
        tags,
        response: { "200": { description: "questions", ...open({ questions: listOf(question) }) }, ...problems() },
      },
    },
    async (request) => ({ questions: await host.questions.list({ caller: callerOf(request) }) }),
  )
  app.post(
    "/v1/questions/:id",
    {
      schema: {
        operationId: "answerQuestion",
        summary: "A person's answer, which fits the form; the call that waits for it goes on",
        tags,
        params: idParams,
        body: closed({ answer: { description: "JSON that fits the question's `form`" } }, ["answer"]),
        response: { "204": { description: "done", type: "null" }, ...problems(422) },
      },
    },
    async (request, reply) => {
      const { answer } = request.body as { answer: JsonValue }
      const { id } = request.params as { id: string }
      orProblem(await host.questions.answer(id, answer, { caller: callerOf(request) }))
      return reply.code(204).send()
    },
  )
}
