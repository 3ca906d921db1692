/** A group of tests that need an engine: where there is none, each is skipped with the reason, and that is said aloud. */
import { beforeEach, describe } from "vitest"
import { type EngineOrReason, skippedLoudly } from "../../support/docker-engine.ts"

export const engineSuite = (name: string, engine: EngineOrReason, body: () => void): void => {
  skippedLoudly(engine)
  describe(name, () => {
    beforeEach((context) => {
      if (!engine.ok) context.skip(engine.reason)
    })
    body()
  })
}
