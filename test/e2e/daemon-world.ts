/** A real daemon on folders of its own, with the fixture tools, and ways to ask it as different people. */
import { request as httpRequest } from "node:http"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Daemon, type DaemonOptions, openDaemon } from "../../src/daemon/daemon.ts"
import type { TokenOptions } from "../../src/host/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { type Heard, type Judge, judgeBy } from "./daemon-judge.ts"
import { fixtureTools, openFolder } from "./host-world.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}
export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>

export interface DaemonWorld extends AsyncDisposable {
  readonly daemon: Daemon
  readonly folder: string
  readonly workspace: string
  readonly data: string
  readonly address: string
  /** a token's own voice */
  as(options?: TokenOptions): Promise<Ask>
  /** over the Unix socket, as the OS user */
  readonly local: Ask
  /** with any header, or none */
  readonly raw: Ask
}

const bodyOf = (text: string): Record<string, unknown> =>
  text === "" ? {} : (JSON.parse(text) as Record<string, unknown>)

/** Every answer is as the document says. */
const judged = (judge: Judge | undefined, heard: Heard): void => {
  const fault = judge?.(heard)
  if (fault !== undefined) throw new Error(`an answer that the document does not have: ${fault}`)
}

export const askAt =
  (address: string, own: Readonly<Record<string, string>> = {}, judge?: Judge): Ask =>
  async (method, path, body, headers = {}) => {
    const sent = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body)
    const response = await fetch(address + path, {
      method,
      headers: { ...own, ...(sent === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(sent === undefined ? {} : { body: sent }),
    })
    const { status } = response
    const text = await response.text()
    judged(judge, { method, path, status, type: response.headers.get("content-type") ?? "", text })
    return { status, headers: response.headers, body: bodyOf(text) }
  }

/** Over the Unix socket, as the OS user. */
export const askLocally =
  (socketPath: string, judge?: Judge): Ask =>
  (method, path, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const sent = body === undefined ? undefined : JSON.stringify(body)
      const asked = httpRequest(
        {
          socketPath,
          method,
          path,
          headers: { ...(sent === undefined ? {} : { "content-type": "application/json" }), ...headers },
        },
        (response) => {
          const pieces: Buffer[] = []
          response.on("data", (piece: Buffer) => pieces.push(piece))
          response.on("end", () => {
            const headers = new Headers(response.headers as Record<string, string>)
            const status = response.statusCode ?? 0
            const text = Buffer.concat(pieces).toString("utf8")
            try {
              judged(judge, { method, path, status, type: headers.get("content-type") ?? "", text })
              resolve({ status, headers, body: bodyOf(text) })
            } catch (error) {
              reject(error as Error)
            }
          })
          response.on("error", reject)
        },
      )
      asked.on("error", reject)
      asked.end(sent)
    })

export const openDaemonWorld = async (config = "", options: DaemonOptions = {}): Promise<DaemonWorld> => {
  const folder = openFolder()
  const workspace = join(folder, "work")
  const data = join(folder, "data")
  mkdirSync(join(workspace, "notes"), { recursive: true })
  writeFileSync(join(workspace, "notes", "old.txt"), "old\n")
  const file = join(folder, "caisson.yaml")
  writeFileSync(file, config, { mode: 0o600 })
  const asked = { data, manifests: [fixtureTools], config: file, listen: "127.0.0.1:0", ...options }
  const daemon = await openDaemon(asked).catch((error: unknown) => {
    removeFolder(folder)
    throw error
  })
  const address = daemon.address ?? ""
  const judge = judgeBy((await askLocally(daemon.socket)("GET", "/openapi.json")).body)
  return {
    daemon,
    local: askLocally(daemon.socket, judge),
    folder,
    workspace,
    data,
    address,
    raw: askAt(address, {}, judge),
    as: async (of = {}) => {
      const made = await daemon.host.tokens.issue({ user: "alice", workspaces: [workspace], ...of })
      if (!made.ok) throw new Error(made.error.message)
      return askAt(address, { authorization: `Bearer ${made.value.token}` }, judge)
    },
    async [Symbol.asyncDispose]() {
      await daemon.close()
      removeFolder(folder)
    },
  }
}
