/** A host, and services over TLS under any name, for programs and a browser as people have them. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:https"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { once } from "node:events"
import { PassThrough } from "node:stream"
import { text } from "node:stream/consumers"
import { createSecureContext, getCACertificates, setDefaultCACertificates } from "node:tls"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { Host } from "../../src/host/types.ts"
import type { Person } from "../../src/host/person.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const caller = processCaller("alice")

export interface Place extends AsyncDisposable {
  readonly host: Host
  readonly data: string
  readonly workspace: string
  call(tool: string): Promise<unknown>
  login(driver: string, person: Person): ReturnType<Host["login"]>
  logout(driver: string): ReturnType<Host["logout"]>
  /** every file below the data folder, as one text */
  kept(): string
}

/** What is being removed just then is as good as gone. */
const ifThere = <T>(read: () => T, gone: T): T => {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return gone
    throw error
  }
}
const everything = (folder: string): string =>
  ifThere(() => readdirSync(folder, { withFileTypes: true }), [])
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      if (entry.isDirectory()) return everything(path)
      return entry.isFile() ? ifThere(() => readFileSync(path, "latin1"), "") : ""
    })
    .join("\n")

export const openPlace = async (config: string, files: Readonly<Record<string, string>>): Promise<Place> => {
  const folder = openFolder()
  const [data, workspace, manifests] = [join(folder, "data"), join(folder, "work"), join(folder, "m")]
  mkdirSync(workspace)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(manifests, path)), { recursive: true })
    writeFileSync(join(manifests, path), content)
    if (content.startsWith("#!")) chmodSync(join(manifests, path), 0o755)
  }
  const file = join(folder, "caisson.yaml")
  writeFileSync(file, config, { mode: 0o600 })
  const host = await createHost({ data, manifests: [manifests], config: file })
  return {
    host,
    data,
    workspace,
    call: (tool) => host.call({ tool, input: {}, workspace }, { caller, approved: true }),
    login: (driver, person) => host.login(driver, { caller, workspace, person }),
    logout: (driver) => host.logout(driver, { caller, workspace }),
    kept: () => (existsSync(data) ? everything(data) : ""),
    async [Symbol.asyncDispose]() {
      await host.close()
      removeFolder(folder)
    },
  }
}

export interface Service extends AsyncDisposable {
  readonly port: number
  readonly caPem: string
  readonly seen: string[]
}
type Answer = (request: IncomingMessage, body: string) => readonly [number, object]

/** HTTPS under any name, with a test authority's certificates. */
export const startService = async (names: readonly string[], answer: Answer): Promise<Service> => {
  const authority = createCallAuthority()
  const seen: string[] = []
  const server: Server = createServer(
    {
      ...authority.leafFor(names[0] ?? ""),
      SNICallback: (name, done) => done(null, createSecureContext(authority.leafFor(name))),
    },
    (request: IncomingMessage, response: ServerResponse) => {
      void text(request).then((body) => {
        const [status, value] = answer(request, body)
        seen.push(`${request.method} ${request.headers.host}${request.url?.split("?")[0]} ${status}`)
        response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value))
      })
    },
  )
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    caPem: authority.caPem,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
      authority.dispose()
    },
  }
}

/** This process trusts them too, as long as it is held. */
export const trustingHere = (...authorities: readonly string[]): Disposable => {
  const before = getCACertificates("default")
  setDefaultCACertificates([...before, ...authorities])
  return { [Symbol.dispose]: () => setDefaultCACertificates(before) }
}

/** Types each answer once its question is on the screen, at a terminal. */
export const typing = (answers: readonly (readonly [asked: string, answer: string])[]): Person => {
  const input = new PassThrough()
  let screen = ""
  let next = 0
  return {
    terminal: {
      columns: 80,
      rows: 24,
      input,
      onResize: () => ({ [Symbol.dispose]: () => undefined }),
      show: (bytes) => {
        screen += Buffer.from(bytes).toString("utf8")
        const [asked, answer] = answers[next] ?? []
        if (asked === undefined || !screen.includes(asked)) return
        screen = ""
        next += 1
        input.write(`${answer}\r`)
      },
    },
  }
}

/** A program of the system's that trusts the test's authority. */
export const trusting = (program: string): string =>
  `#!/bin/sh\n[ "$1" = --version ] && echo trusting 1.0.0 && exit\nSSL_CERT_FILE="\${0%/*}/ca.pem" exec ${program} "$@"\n`
export const toolNamed = (id: string): string =>
  `---\nname: ${id}\nid: ${id}\nversion: 1.0.0\ndescription: d\ninputs: { type: object }\noutputs: { type: string }\n---\n`
