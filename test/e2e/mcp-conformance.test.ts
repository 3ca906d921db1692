/**
 * The protocol's own conformance suite, in the role of a server, against this host with an mcp driver: all that a revision
 * requires of a client, and what the suite has beside it that this host does. No failure is expected.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { describeNeeding } from "../support/needing.ts"
import { fetchSuite } from "./mcp-suite-fetched.ts"

const run = promisify(execFile)
const { entry: suiteEntry, folder: suiteFolder, missing } = await fetchSuite()

/** Logins, as both revisions have them. */
const logins = [
  "metadata-default",
  "metadata-var1",
  "metadata-var2",
  "metadata-var3",
  "basic-cimd",
  "scope-from-www-authenticate",
  "scope-from-scopes-supported",
  "scope-omitted-when-undefined",
  "scope-step-up",
  "scope-retry-limit",
  "token-endpoint-auth-basic",
  "token-endpoint-auth-post",
  "token-endpoint-auth-none",
  "pre-registration",
]
const loginsSince2026 = [
  "resource-mismatch",
  "offline-access-scope",
  "offline-access-not-supported",
  "authorization-server-migration",
  "iss-supported",
  "iss-not-advertised",
  "iss-supported-missing",
  "iss-wrong-issuer",
  "iss-unexpected",
  "iss-normalized",
  "metadata-issuer-mismatch",
]
const asScenarios = (names: readonly string[]): readonly string[] => names.map((name) => `auth/${name}`)

/** Every client scenario of a revision; those without one are extensions. */
const scenarios: Readonly<Record<string, readonly string[]>> = {
  "2025-11-25": [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
    ...asScenarios(logins),
  ],
  "2026-07-28": [
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    ...asScenarios([...logins, ...loginsSince2026]),
  ],
  "2025-03-26": asScenarios(["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"]),
  extension: asScenarios(["client-credentials-basic"]),
}

describeNeeding("the conformance suite", missing, () => {
  it.each(Object.entries(scenarios).flatMap(([version, names]) => names.map((name) => [version, name] as const)))(
    "%s: %s",
    async (version, scenario) => {
      const command = `${process.execPath} ${join(import.meta.dirname, "mcp-conformance-client.ts")}`
      const words = ["client", "--command", command, "--scenario", scenario, "--timeout", "150000"]
      if (version !== "extension") words.push("--spec-version", version)
      const { stdout, stderr } = await run(process.execPath, [suiteEntry, ...words], { cwd: suiteFolder }).catch(
        (error: { stdout: string; stderr: string }) => error,
      )
      const told = `${stdout}${stderr}`
      expect(told).toContain("OVERALL: PASSED")
      expect(told).toMatch(/ 0 failed, 0 warnings/)
      expect(told).not.toContain("SKIPPED: scenario")
    },
  )
})
