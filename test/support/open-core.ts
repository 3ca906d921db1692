/** One generation and what it stands on, as a host has them, to look at from inside. Both end together. */
import { openCore } from "../../src/host/assemble/core.ts"
import { openGround } from "../../src/host/assemble/ground.ts"

type Options = Omit<Parameters<typeof openCore>[0], "ground"> &
  Omit<Parameters<typeof openGround>[0], "data" | "config">

export const openWholeCore = async ({ backend, warm, ...rest }: Options): ReturnType<typeof openCore> => {
  const { data, config } = rest
  const ground = await openGround({ data, config, warm, ...(backend === undefined ? {} : { backend }) })
  try {
    const core = await openCore({ ...rest, ground })
    ground.serve(core.registry)
    return {
      ...core,
      async [Symbol.asyncDispose]() {
        await core[Symbol.asyncDispose]()
        await ground[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await ground[Symbol.asyncDispose]()
    throw error
  }
}
