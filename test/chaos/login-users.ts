/** Processes that use one login at the same time, and that are killed over it. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { processCaller } from "../../src/host/index.ts"
import { openWorld, type World } from "../e2e/host-world.ts"
import { BrowsingPerson, startOidc } from "../support/servers/oidc.ts"

const script = join(import.meta.dirname, "fixtures/login-user.ts")

export interface Place {
  readonly config: string
  readonly data: string
  readonly workspace: string
  /** absent: those that the config names */
  readonly manifests?: string
}

export interface LoginUser extends AsyncDisposable {
  /** What it came to; undefined where it was killed before it could tell. */
  act(): Promise<unknown>
  kill(): void
}

export const placeOf = (
  world: Pick<World, "folder" | "data" | "workspace"> & { readonly manifests?: string },
): Place => ({
  config: join(world.folder, "caisson.yaml"),
  data: world.data,
  workspace: world.workspace,
  ...(world.manifests === undefined ? {} : { manifests: world.manifests }),
})

const fixtures = join(import.meta.dirname, "../../fixtures/logins-oauth")

/** A real provider, and a host whose driver `desk` is signed in to it with tokens that are due at once. */
export const openDesk = async () => {
  const server = await startOidc({ name: "id.test", accessTokenSeconds: 1 })
  const world = await openWorld(
    `egress: { services: { "id.test": "127.0.0.1:${server.port}" } }
manifests: ["${fixtures}"]
logins:
  desk: { flow: authorization-code, issuer: "http://id.test", client_id: caisson, scopes: [openid, offline_access] }
`,
    { manifests: [] },
  )
  const login = async () => {
    const person = new BrowsingPerson({ name: "id.test", port: server.port })
    const visits: Promise<unknown>[] = []
    const open = (page: { readonly url: string }): void => void visits.push(person.visit(page.url))
    const report = await world.host.login("desk", {
      caller: processCaller("alice"),
      workspace: world.workspace,
      person: { open },
    })
    await Promise.all(visits)
    return report
  }
  await login()
  server.accessTokenSeconds = 3600
  server.grants.length = 0
  return {
    server,
    world,
    login,
    place: placeOf(world),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Answers once the process is ready to begin. */
export const startUser = async (
  { config, data, workspace, manifests = "" }: Place,
  tool: string,
  does: "call" | "login" | "logout",
  count = 1,
): Promise<LoginUser> => {
  const child: ChildProcess = spawn(
    process.execPath,
    [script, config, data, workspace, manifests, tool, does, String(count)],
    { stdio: ["pipe", "pipe", "inherit"] },
  )
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error("it has no pipes")
  // One that is killed takes nothing any more.
  stdin.on("error", () => undefined)
  const closed = once(child, "close")
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const { value } = await lines.next()
  if (value !== "ready") throw new Error(`it is not ready: ${String(value)}`)
  return {
    act: async () => {
      stdin.write("go")
      const line = await lines.next()
      return line.done === true ? undefined : (JSON.parse(line.value) as unknown)
    },
    kill: () => void child.kill("SIGKILL"),
    async [Symbol.asyncDispose]() {
      stdin.end()
      await closed
    },
  }
}
