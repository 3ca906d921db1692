/**
 * What a driver may declare and this host has no control for, whatever the call.
 *
 * Guarantees: a driver that passes can be sealed as far as its own words go; one that does not is dropped from the
 * route and shown as unavailable, with what to change. Pure. Does not: ask the machine; the sandbox does.
 */
import type { DriverContract } from "../../../manifest/types.ts"
import { isPinned } from "../../../manifest/kinds/runner.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { OperatorConfig } from "../../config/types.ts"
import type { Unenforceable } from "../../drivers/kind.ts"
import { kindOf } from "../../drivers/kinds.ts"

/** `in-process` is honoured as a subprocess, as the spec has it for code that nobody vouches for. */
const badRunner = (contract: DriverContract, backend: Backend): Unenforceable | undefined => {
  const { id, runner } = contract
  if (runner === undefined) return undefined
  if (runner.form !== "inline")
    return {
      control: "runner",
      reason: `${id} declares a runner that this host does not have: there is no \`${runner.form === "ref" ? runner.ref : runner.file}\` among its manifests`,
      fix: "put the RUNNER.md there, or write the runner in the driver, as in `runner: { engine: subprocess }`",
    }
  const { npm, pip } = runner.needs
  if (npm.length + pip.length > 0 && kindOf(contract)?.takesPackages !== true)
    return {
      control: "runner-needs",
      reason: `${id} is of a kind that gets no packages from its runner (${[...npm, ...pip].join(", ")})`,
      fix: "name its package under `install`, or make it a driver of kind sdk",
    }
  const { image } = runner
  if (image === undefined) return undefined
  const what = `declares a runner image (\`${shown(image, 120)}\`)`
  if (isPinned(image) && kindOf(contract)?.takesImage !== true)
    return {
      control: "runner-image",
      reason: `${id} ${what}, and only drivers of kind sdk run on one`,
      fix: "remove `image` from the runner",
    }
  return unfitImage({ id, what, image, where: "image", or: "remove `image` from the runner" }, backend)
}

interface NamedImage {
  readonly id: string
  readonly what: string
  readonly image: string
  readonly where: string
  /** what else could be done */
  readonly or: string
}

/** Images are files of whoever made them: one that a name means today may be another tomorrow. */
const unfitImage = ({ id, what, image, where, or }: NamedImage, backend: Backend): Unenforceable | undefined => {
  if (!isPinned(image))
    return {
      control: "runner-image",
      reason: `${id} ${what}, which is not named by its digest`,
      fix: `write \`${where}: NAME@sha256:…\`, or the image's id, as in \`sha256:…\``,
    }
  if (backend === "docker") return undefined
  return {
    control: "runner-image",
    reason: `${id} ${what}, and the ${backend} backend shows the machine's own programs`,
    fix: `use \`--backend docker\` with an engine that has the image, or ${or}`,
  }
}

const badImage = (contract: DriverContract, backend: Backend): Unenforceable | undefined => {
  const image = kindOf(contract)?.image?.(contract)
  if (image === undefined) return undefined
  const what = `starts its server from an image (\`${shown(image, 120)}\`)`
  return unfitImage({ id: contract.id, what, image, where: "image", or: "use another server" }, backend)
}

type Backend = OperatorConfig["backend"]

export const unenforceable = (contract: DriverContract, backend: Backend): Unenforceable | undefined => {
  if (contract.ingress.length > 0)
    return {
      control: "ingress",
      reason: `${contract.id} declares ingress (${contract.ingress.join(", ")}), which this host cannot offer`,
      fix: "remove `network.ingress` from the driver",
    }
  return badRunner(contract, backend) ?? badImage(contract, backend) ?? kindOf(contract)?.unenforceable(contract)
}
