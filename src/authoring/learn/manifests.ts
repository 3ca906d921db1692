/**
 * A command and what its runs needed → a contract and a driver that allow just that, each line with the receipts that
 * showed it.
 *
 * Guarantees: pure. What was not watched (reads, where nobody did) is left as wide as it was for the runs, and says so.
 */
import type { JsonObject, JsonValue } from "../../manifest/base-types.ts"
import type { ScaffoldAnswers } from "../scaffold/answers.ts"
import { type ScaffoldFile, scaffoldOf } from "../scaffold/scaffold.ts"
import { commentKey, manifestText } from "../text/front.ts"
import type { ProposedGlob } from "./globs.ts"
import { citing, type Needs } from "./propose.ts"

export interface SeenCall {
  readonly input: JsonObject
  /** what each run with this input answered alike; absent: they differed, or there was one alone */
  readonly output?: JsonValue
}

const remark = ({ below, guarded }: ProposedGlob): string =>
  guarded === true
    ? "look twice: other programs run or trust it, "
    : below === undefined
      ? ""
      : `${below} paths in a folder that it made itself, `

export const learnedManifests = (
  asked: ScaffoldAnswers,
  needs: Needs,
  calls: readonly SeenCall[],
  version?: { readonly cmd: string; readonly parse: string; readonly range: string },
): readonly ScaffoldFile[] => {
  const { write, read, hosts, spawn, timeoutMs, receipts } = needs
  const answers: ScaffoldAnswers = {
    ...asked,
    write: write.map(({ glob }) => glob),
    hosts: hosts.map(({ value }) => value),
    spawn: spawn.map(({ value }) => value),
  }
  const { tool, driver, files } = scaffoldOf(answers)
  const comments = new Map<string, string>()
  const about = (path: readonly (string | number)[], text: string): void => void comments.set(commentKey(path), text)
  write.forEach((each, at) => {
    about(["mutates", at], citing(each.receipts, remark(each)))
    about(["sandbox", "fs", "write", at], citing(each.receipts, remark(each)))
  })
  hosts.forEach(({ receipts: seen }, at) => {
    about(["requires", "network", at], citing(seen))
    about(["sandbox", "network", "egress", at], citing(seen))
  })
  spawn.forEach(({ receipts: seen }, at) => about(["sandbox", "exec", "spawn", at], citing(seen)))
  about(["timeout_ms"], citing(receipts, "ten times the longest run, "))
  const sandbox = driver["sandbox"] as JsonObject
  const fs = sandbox["fs"] as JsonObject
  if (read === undefined)
    about(["sandbox", "fs", "read", 0], "all of it: it was not watched, or ends otherwise where it sees less")
  else read.forEach(({ receipts: seen }, at) => about(["sandbox", "fs", "read", at], citing(seen)))
  const { outputBytes, network } = needs
  const metadata: JsonObject = {
    ...(outputBytes === undefined ? {} : { limits: { output_bytes: outputBytes } }),
    ...(network === undefined ? {} : { egress_budget: { bytes_out: network.bytesOut, bytes_in: network.bytesIn } }),
  }
  about(["metadata", "limits", "output_bytes"], citing(receipts, "ten times the most, "))
  about(["metadata", "egress_budget", "bytes_out"], citing(receipts, "ten times the most, "))
  about(["metadata", "egress_budget", "bytes_in"], citing(receipts, "ten times the most, "))
  const learned: JsonObject = {
    ...driver,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(version === undefined ? {} : { version_check: { ...version } }),
    sandbox: {
      ...sandbox,
      fs: { ...fs, read: read === undefined ? ["**"] : [...new Set(read.map(({ glob }) => glob))] },
    },
  }
  const examples = calls.map(({ input, output }, at) => ({
    name: `as it was learned, ${at + 1}`,
    input,
    ...(output === undefined ? {} : { output }),
  }))
  const contract = { ...tool, timeout_ms: timeoutMs, ...(examples.length === 0 ? {} : { examples }) }
  const cited = receipts.length === 1 ? "one sealed run" : `${receipts.length} sealed runs`
  const body = `Learned from ${cited} that were not committed. Each line names the receipts that showed it; look before you trust it.`
  return [
    { path: "TOOL.md", text: manifestText(contract, body, comments) },
    { path: "DRIVER.md", text: manifestText(learned, body, comments) },
    ...files,
  ]
}
