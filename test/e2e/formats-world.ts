/** A host over the fixtures of other formats as they are, and the services that they name. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { CallOptions, Envelope, Host } from "../../src/host/types.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

export interface FormatsWorld extends AsyncDisposable {
  readonly host: Host
  readonly folder: string
  readonly data: string
  readonly workspace: string
  readonly requests: readonly {
    readonly method: string
    readonly url: string
    readonly headers: IncomingMessage["headers"]
    readonly body: string
  }[]
  /** how the services answer from now on */
  answer(with_: (request: IncomingMessage, response: ServerResponse, body: string) => void): void
  call(tool: string, input: object, more?: CallOptions): Promise<Envelope>
}

const NAMES = ["orders.shop.test", "pay.shop.test", "tools.shop.test"]

interface WorldOptions {
  /** of caisson.yaml */
  readonly config?: string
  /** the folder of manifests is one that a caller named, not the operator */
  readonly unvouched?: boolean
  /** further names → addresses */
  readonly services?: Readonly<Record<string, string>>
  /** changes a fixture before it is read */
  readonly edit?: (put: (name: string, change: (text: string) => string) => void) => void
}

export const openFormatsWorld = async ({
  config = "",
  unvouched,
  services: more = {},
  edit,
}: WorldOptions = {}): Promise<FormatsWorld> => {
  const folder = openFolder()
  const manifests = join(folder, "m")
  cpSync(join(import.meta.dirname, "../../fixtures/formats"), manifests, { recursive: true })
  edit?.((name, change) => {
    const file = join(manifests, name)
    mkdirSync(join(file, ".."), { recursive: true })
    let text = ""
    try {
      text = readFileSync(file, "utf8")
    } catch {
      // A new one.
    }
    writeFileSync(file, change(text))
  })
  const workspace = join(folder, "work")
  mkdirSync(join(workspace, "notes"), { recursive: true })
  writeFileSync(join(workspace, "notes", "old.txt"), "old\n")
  const authority = createCallAuthority({ names: NAMES })
  const before = getCACertificates("default")
  setDefaultCACertificates([...before, authority.caPem])
  const requests: FormatsWorld["requests"][number][] = []
  let answer: Parameters<FormatsWorld["answer"]>[0] = (_request, response) => response.end("{}")
  const servers = await Promise.all(
    NAMES.map(async (name) => {
      const server = createServer(authority.leafFor(name), (request, response) => {
        let body = ""
        request.on("data", (chunk: Buffer) => (body += chunk.toString()))
        request.on("end", () => {
          requests.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body })
          answer(request, response, body)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  const named = { ...Object.fromEntries(NAMES.map((name, i) => [name, `127.0.0.1:${ports[i]}`])), ...more }
  const services = Object.entries(named)
    .map(([name, address]) => `    ${name}: ${address}`)
    .join("\n")
  const data = join(folder, "data")
  mkdirSync(data, { mode: 0o700 })
  const file = join(folder, "caisson.yaml")
  const own = unvouched === true ? "" : `manifests: [${manifests}]\n`
  writeFileSync(file, `${own}egress:\n  services:\n${services}\n${config}`, { mode: 0o600 })
  const host = await createHost({ data, config: file, ...(unvouched === true ? { manifests: [manifests] } : {}) })
  return {
    host,
    folder,
    data,
    workspace,
    requests,
    answer: (with_) => {
      answer = with_
    },
    call: (tool, input, more = {}) =>
      host.call(
        { tool, input: input as never, workspace },
        { caller: processCaller("alice"), approved: true, ...more },
      ),
    async [Symbol.asyncDispose]() {
      await host.close()
      for (const server of servers) server.closeAllConnections()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
      setDefaultCACertificates(before)
      removeFolder(folder)
    },
  }
}
