/** Any method's request → one that can be looked up and made, or why this host cannot. */
import { shown } from "../../../manifest/values/diagnostics.ts"
import { notHere } from "../failures.ts"
import type { InstallAnswer, Known, MethodSpec, MethodTools } from "../types.ts"
import { knownDebian } from "./apt.ts"
import { knownCode } from "./code.ts"
import { knownDownload } from "./download.ts"
import { knownFolder } from "./folder.ts"
import { knownPackages } from "./packages.ts"
import { knownScript } from "./script.ts"

export const knownFor = async (spec: MethodSpec, tools: MethodTools): Promise<InstallAnswer<Known>> => {
  switch (spec.source) {
    case "code":
      return knownCode(spec.sources)
    case "local":
      return knownFolder(spec.folder)
    case "npm":
    case "pip":
    case "cargo":
    case "go":
      return knownPackages({ ...spec, source: spec.source }, tools)
    case "apt":
      return knownDebian(spec.packages, tools)
    case "download":
      return knownDownload(spec, tools)
    case "curl":
      return knownScript(spec, tools)
    default:
      return notHere(
        `this host installs by apt, npm, pip, cargo, go, curl and download, not by ${shown(String((spec as { source: unknown }).source), 30)}`,
        "use a driver whose package comes by one of these, or lies beside its manifest",
      )
  }
}
