/**
 * Packages of npm, pip, cargo and go: one run of their manager, which reaches their registry alone.
 *
 * Guarantees: nothing is started where the operator's `egress.allow` leaves the registry out. A checksum that does not
 * match ends the installation, whatever other methods there are.
 */
import { failed } from "../failures.ts"
import { installedPackages } from "../installed-packages.ts"
import { commandFor, languageFor, saysMismatch, tellsOfFetch } from "../managers.ts"
import { registryFor } from "../registries.ts"
import { requestOf } from "../spec.ts"
import type { InstallAnswer, Known, MethodSpec, MethodTools } from "../types.ts"
import { unacceptable } from "./accept.ts"

type ByManager = Extract<MethodSpec, { packages: unknown }> & { readonly source: "npm" | "pip" | "cargo" | "go" }

export const knownPackages = (spec: ByManager, { config, build }: MethodTools): InstallAnswer<Known> => {
  const { source } = spec
  const language = languageFor(source, config)
  if (!language.ok)
    return { ok: false, code: "tool_unavailable", message: language.reason, hint: language.fix, details: {} }
  const registry = registryFor(source, config)
  const request = requestOf(spec, registry.url, language.value.language)
  if (!request.ok) return request
  const { key, what, requirements } = request.value
  const fill: Known["fill"] = async (folder, { signal, tell }) => {
    if (registry.closed.length > 0)
      return failed(
        `${what} comes from ${registry.closed.join(", ")}, which \`egress.allow\` in caisson.yaml leaves out`,
        `add it there, or name another registry as \`install.${registry.setting}\``,
      )
    const command = commandFor(source, language.value, registry, requirements)
    if (!command.ok) return failed(`${what} cannot be installed: ${command.reason}`, command.fix)
    let fetched = 0
    const built = await build(
      {
        name: source,
        ...command.value,
        egress: registry.egress,
        folder,
        accept: unacceptable,
        explain: saysMismatch,
        line: (text) => {
          if (!tellsOfFetch(text)) return
          fetched += 1
          tell({ phase: "fetching", what, fetched })
        },
      },
      signal,
    )
    return built.ok ? { ok: true, value: installedPackages(spec, folder) } : built
  }
  return { ok: true, value: { key, what, fill } }
}
