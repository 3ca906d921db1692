/**
 * Modules of Amplifier's looked into without a host: for commands that check or write down what they mount.
 *
 * Guarantees: as a host does it, in a sandbox without network, secrets or workspace; nothing is registered, and the
 * sandbox backend is gone afterwards.
 */
import { createModuleRunner } from "../call/running/outside/run-in-module.ts"
import { loadConfig } from "../config/load.ts"
import { dataFolderOf, openDataFolder } from "../data/folder.ts"
import { amplify, type Amplified } from "./amplifier.ts"
import { openGround } from "./ground.ts"

/** With what the operator's config says of a module of the same path. */
export const lookAtModules = async (paths: readonly string[]): Promise<Amplified> => {
  const data = openDataFolder(dataFolderOf(undefined))
  const config = loadConfig(data, undefined)
  const closing = new AbortController()
  await using ground = await openGround({ data, config, warm: false })
  const runInModule = createModuleRunner(data, ground.backend, closing.signal)
  const named = paths.map((path) => config.amplifier.find((each) => each.path === path) ?? { module: path, path })
  return await amplify(data, { ...config, amplifier: named }, runInModule)
}
