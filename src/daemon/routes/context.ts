/** What routes share. */
import type { FastifyInstance, FastifyRequest } from "fastify"
import type { Caller } from "../../host/access/caller.ts"
import type { Host } from "../../host/types.ts"
import type { CallsUnderWay } from "../calls-under-way.ts"
import type { Changes } from "../events/changes.ts"
import type { Places } from "../ops/places.ts"

export interface Routes {
  readonly app: FastifyInstance
  readonly host: Host
  readonly calls: CallsUnderWay
  /** of events */
  readonly streams: Places
  /** where calls that name no workspace run */
  readonly empty: string
  readonly version: string
  readonly changes: Changes
  /** What a request brought along is kept in memory for as long as this is not disposed of. */
  readonly takeBody: (request: FastifyRequest) => Disposable
  /** hears of what nobody foresaw */
  readonly onFault: (error: unknown) => void
  /** who asks; the request was authenticated before it came here */
  readonly callerOf: (request: FastifyRequest) => Caller
}
