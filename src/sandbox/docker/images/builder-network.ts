/**
 * The only network a driver layer's build gets: a namespace of its own whose one way out is a channel of the host's.
 *
 * Guarantees: build steps reach what the host's proxy lets them reach and nothing else; the namespace and its
 * container are gone when the build is over. A build that failed after it was refused a host names that host.
 */
import type { Channel } from "../../backend.ts"
import { adoptNetwork } from "../../network/netns.ts"
import { openChannel } from "../container/channel.ts"
import { LABEL } from "../container/container-spec.ts"
import type { Engine, Outcome } from "../engine/engine.ts"
import { BUILD_PROXY_PORT } from "./images.ts"
import type { Removals } from "../engine/removals.ts"

export interface BuildService extends AsyncDisposable {
  /** what the build asked for and was not let reach, as `host:port` */
  denied?(): readonly string[]
}
/** Serve the channel of a build until disposed of: registries only, no secret. */
export type ServeBuild = (channel: Channel) => Promise<BuildService> | BuildService

/** A builder only knows that something did not come; what was refused comes first. */
const withDenials = <T>(outcome: Outcome<T>, denied: readonly string[]): Outcome<T> => {
  if (outcome.ok || denied.length === 0) return outcome
  const named = [...new Set(denied)].slice(0, 5).join(", ")
  const message = `the build asked for ${named}, which this machine's apt sources do not name, and was refused; the builder said: ${outcome.failure.message}`
  return { ok: false, failure: { kind: "egress", message } }
}

export interface BuilderNetworkOptions {
  readonly engine: Engine
  readonly removals: Removals
  /** an image with perl; nothing else in it is run */
  readonly image: string
  readonly host: string
  readonly data: string
  readonly homeNetwork: number
  readonly serve: ServeBuild
}

const WAITS_FOR_EVER = "sleep 3600 while 1"

/** Run a build with the name of its network mode. */
export const withBuilderNetwork = async <T>(
  options: BuilderNetworkOptions,
  build: (networkMode: `container:${string}`) => Promise<Outcome<T>>,
): Promise<Outcome<T>> => {
  const { engine } = options
  const created = await engine.create({
    Image: options.image,
    Entrypoint: ["/usr/bin/perl"],
    Cmd: ["-e", WAITS_FOR_EVER],
    User: "65534:65534",
    Labels: { [LABEL.host]: options.host, [LABEL.slot]: "builder", [LABEL.data]: options.data },
    HostConfig: {
      NetworkMode: "none",
      Dns: ["127.0.0.1"],
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: 8,
      Memory: 64 * 2 ** 20,
      MemorySwap: 64 * 2 ** 20,
      Ulimits: [
        { Name: "nofile", Soft: 64, Hard: 64 },
        { Name: "nproc", Soft: 64, Hard: 64 },
        { Name: "core", Soft: 0, Hard: 0 },
      ],
      LogConfig: { Type: "none", Config: {} },
    },
  })
  if (!created.ok) return created
  try {
    const started = await engine.start(created.value)
    if (!started.ok) return started
    const state = await engine.inspect(created.value)
    if (!state.ok) return state
    const network = adoptNetwork(options.homeNetwork, `/proc/${state.value.pid}/ns/net`)
    try {
      const opened = await openChannel(network, { proxyPort: BUILD_PROXY_PORT, transparentPorts: [80, 443], dns: true })
      try {
        await using served = await options.serve(opened.channel as Channel)
        const outcome = await build(`container:${created.value}`)
        return withDenials(outcome, served.denied?.() ?? [])
      } finally {
        opened.close()
      }
    } finally {
      network.close()
    }
  } finally {
    await options.removals.remove(created.value)
  }
}
