/**
 * A daemon that serves the suite's tools at `/mcp`, and a door to it for a suite that shows no token: each request gets one
 * on its way, and nothing else of it is touched, its Host and Origin least of all. An operator takes each contract that a
 * tool leaves in its workspace to where manifests are, and has them read again.
 */
import { once } from "node:events"
import { cpSync, mkdirSync, rmSync, watch, writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { openDaemon } from "../../src/daemon/daemon.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"
import { writeSuiteTools } from "./mcp-suite-tools.ts"

export interface SuiteWorld extends AsyncDisposable {
  readonly url: string
}

/** A free port, so that the operator can name the origin that the suite will have. */
const openDoor = async (to: () => { readonly port: number; readonly token: string }) => {
  const door = createServer((near, answer) => {
    const { port, token } = to()
    const far = request(
      {
        host: "127.0.0.1",
        port,
        method: near.method,
        path: near.url,
        headers: { ...near.headers, authorization: `Bearer ${token}` },
      },
      (told) => {
        answer.writeHead(told.statusCode ?? 502, told.headers)
        told.pipe(answer)
        told.on("error", () => answer.destroy())
      },
    )
    far.on("error", () => answer.destroy())
    answer.on("close", () => far.destroy())
    near.pipe(far)
  })
  door.listen(0, "127.0.0.1")
  await once(door, "listening")
  return door
}

export const openSuiteWorld = async (): Promise<SuiteWorld> => {
  const folder = openFolder()
  const manifests = join(folder, "manifests")
  const workspace = join(folder, "work")
  const grown = join(workspace, "grown")
  mkdirSync(grown, { recursive: true })
  writeSuiteTools(manifests)
  let to = { port: 0, token: "" }
  const door = await openDoor(() => to)
  const { port } = door.address() as AddressInfo
  const config = join(folder, "caisson.yaml")
  const settings = ["approvals: { on_mutate: auto }", `serve: { origins: ["http://localhost:${port}"] }`]
  writeFileSync(config, `${settings.join("\n")}\n`, { mode: 0o600 })
  const daemon = await openDaemon({ data: join(folder, "data"), manifests: [manifests], config, listen: "127.0.0.1:0" })
  const made = await daemon.host.tokens.issue({ user: "suite", workspaces: [workspace], agent: false })
  if (!made.ok) throw new Error(made.error.message)
  // The suite's own deadlines are for servers that are up: what a first call of each driver takes has nothing to do with them.
  for (const tool of ["suite.text", "suite.progress"]) {
    const told = await daemon.host.call({ tool, input: {}, workspace })
    if (!told.ok) throw new Error(told.error.message)
  }
  to = { port: Number(new URL(daemon.address ?? "").port), token: made.value.token }
  // No tool may write where manifests are read from: whoever wants what one wrote takes it there.
  const take = (): void => {
    cpSync(grown, join(manifests, "grown"), { recursive: true })
    void daemon.reload().then(undefined, () => undefined)
  }
  const watching = watch(grown, { recursive: true }, (_event, file) => void (file?.endsWith("TOOL.md") && take()))
  return {
    url: `http://localhost:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      watching.close()
      door.closeAllConnections()
      door.close()
      await daemon.close()
      rmSync(grown, { recursive: true, force: true })
      removeFolder(folder)
    },
  }
}
