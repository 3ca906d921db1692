/** A real host on folders of its own, with the fixture tools, and checks that it leaves nothing behind. */
import { createHash } from "node:crypto"
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { CallOptions, CallRequest, Envelope, Host, HostOptions } from "../../src/host/types.ts"
import { removeFolder } from "../support/remove-folder.ts"

export const fixtureTools = join(import.meta.dirname, "../../fixtures/tools")

export interface World extends AsyncDisposable {
  readonly host: Host
  readonly folder: string
  readonly workspace: string
  readonly data: string
  call(
    tool: string,
    input: object,
    more?: Partial<CallRequest> & Pick<CallOptions, "caller" | "approved" | "signal">,
  ): Promise<Envelope>
}

/** Names, kinds, modes and contents of a folder, as one digest. */
export const digestOfFolder = (folder: string): string => {
  const hash = createHash("sha256")
  const visit = (path: string, name: string): void => {
    const facts = lstatSync(path)
    const content = facts.isFile()
      ? readFileSync(path).toString("base64")
      : facts.isSymbolicLink()
        ? readlinkSync(path)
        : ""
    hash.update(JSON.stringify([name, facts.mode, facts.uid, facts.gid, content]))
    if (facts.isDirectory()) for (const entry of readdirSync(path).sort()) visit(join(path, entry), `${name}/${entry}`)
  }
  visit(folder, "")
  return hash.digest("hex")
}

export const openFolder = (): string => realpathSync(mkdtempSync(join(tmpdir(), "caisson-e2e-")))

export const openWorld = async (config = "", options: HostOptions = {}): Promise<World> => {
  const folder = openFolder()
  const workspace = join(folder, "work")
  const data = join(folder, "data")
  mkdirSync(join(workspace, "notes"), { recursive: true })
  writeFileSync(join(workspace, "README.md"), "read me\n")
  writeFileSync(join(workspace, "notes", "old.txt"), "old\n")
  const file = join(folder, "caisson.yaml")
  writeFileSync(file, config, { mode: 0o600 })
  const host = await createHost({ data, manifests: [fixtureTools], config: file, ...options }).catch(
    (error: unknown) => {
      removeFolder(folder)
      throw error
    },
  )
  return {
    host,
    folder,
    workspace,
    data,
    call: (tool, input, { caller = processCaller("alice"), approved = true, signal, ...more } = {}) =>
      host.call(
        { tool, input: input as never, workspace, ...more },
        { caller, approved, ...(signal === undefined ? {} : { signal }) },
      ),
    async [Symbol.asyncDispose]() {
      await host.close()
      removeFolder(folder)
    },
  }
}
