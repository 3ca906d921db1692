/** The operator's word, read once and frozen. What it does not say has the default written beside it. */
import type { Annotations } from "../../manifest/formats/annotations.ts"
import type { EgressEntry } from "../../manifest/values/egress-entry.ts"
import type { EgressBudgets, EgressServices } from "../../egress-proxy/types.ts"
import type { Limits } from "../../sandbox/backend.ts"
import type { AmplifierHook, AmplifierModule } from "./amplifier-settings.ts"
import { hostLimits, installLimits } from "../limits.ts"
import type { Budget, BoundContext, DataClass } from "./call-settings.ts"
import type { McpLogins, OAuthSettings } from "./oauth-types.ts"
import type { StoreConfig } from "./store-settings.ts"
import { defaultServe, type ServeConfig } from "./serve-settings.ts"

/** A key-value engine, version 2, of a HashiCorp-compatible server. */
export interface KvSettings {
  /** https, or http to a loopback address */
  readonly address: string
  /** where the engine is mounted, and the folder in it that is this host's */
  readonly mount: string
  readonly prefix: string
  readonly namespace?: string
  /** absolute paths */
  readonly caFile?: string
  readonly auth:
    | { readonly by: "token"; readonly tokenFile: string }
    | {
        readonly by: "app-role"
        readonly mount: string
        readonly roleIdFile: string
        readonly secretIdFile: string
      }
}

export interface OperatorConfig {
  /** where it was read from; absent: no file, all defaults */
  readonly file?: string
  /** folders with more manifests, absolute */
  readonly manifests: readonly string[]
  /** roots that workspaces must lie in; absent: any folder of the user's */
  readonly workspaces?: readonly string[]
  readonly backend: "namespace" | "docker"
  readonly docker: {
    /** `unix://` or `tcp://`; absent: found as Docker's own tools find it */
    readonly engine?: string
    /** whose programs tools are: this machine's, or those of the runner image and drivers' packages on it */
    readonly rootfs: "host" | "image"
    /** containers kept ready for each kind of call, for hosts that live long; 0: none */
    readonly pool: number
  }
  /** named limits bind every call and are refused where they cannot be enforced */
  readonly limits: Partial<Limits>
  readonly egress: {
    readonly services: EgressServices
    /** CIDR grants to private ranges, canonical */
    readonly private: readonly string[]
    /** absent: what drivers declare is allowed; else no call reaches beyond this list */
    readonly allow?: readonly EgressEntry[]
    /** what one call may use, instead of the host's defaults; drivers only narrow it */
    readonly budgets?: Partial<EgressBudgets>
  }
  /** default `report`: the dial is stopped and the tool goes on */
  readonly undeclaredEgress: "refuse" | "report"
  /** default `refuse` */
  readonly undeclaredWrite: "refuse" | "warn"
  readonly policyTags: { readonly allow: readonly string[]; readonly deny: readonly string[] }
  readonly region?: string
  /** does an explicit `global` satisfy `region` (C-22); default false */
  readonly regionAllowsGlobal: boolean
  /** `default`: `auto` for tools of risk_level 0 or 1 that mutate the workspace alone, else `ask` */
  readonly approvals: {
    readonly onMutate: "auto" | "ask"
    /** how long a call whose effects nobody was there to approve is held; 0: not at all */
    readonly holdMs: number
    /** how many are held at once */
    readonly holdCount: number
    /** what they take on disk together */
    readonly holdBytes: number
  }
  /** values that `env.pass` may hand to a tool; the process's own environment is never passed */
  readonly env: Readonly<Record<string, string>>
  /** where drivers' packages come from */
  readonly install: {
    /** http or https; without TLS only because the operator wrote so */
    readonly npmRegistry: string
    readonly pipIndex: string
    /** a sparse index */
    readonly cargoRegistry: string
    /** http, https, or a folder of this machine by its absolute path */
    readonly goProxy: string | { readonly folder: string }
    /** a file of apt's sources to be used instead of this machine's own, absolute */
    readonly aptSources?: string
    /** further hosts that those serve packages from */
    readonly hosts: readonly EgressEntry[]
    /** install at the first call; default: only when asked to (`caisson install`) */
    readonly onDemand: boolean
    /** may `curl` and `download` take what no hash in the manifest vouches for? */
    readonly withoutHash: "refuse" | "allow"
    /** what is taken where a driver names both: a program that this machine has, or its frozen layer */
    readonly prefer: "system" | "layer"
    /** how long a download may be silent */
    readonly stallMs: number
    /** how long it may take in all */
    readonly downloadMs: number
    /** what one build may write, and how long it may take */
    readonly diskBytes: number
    readonly wallMs: number
  }
  /** absolute paths; absent: the host's own Node, and the system's Python, cargo and go */
  readonly interpreters: {
    readonly node?: string
    readonly python?: string
    readonly cargo?: string
    readonly go?: string
  }
  /** further names of this host, which drivers of kind builtin may give as `host_id` */
  readonly builtinHosts: readonly string[]
  readonly readOnlyHttp: "enforce" | "report" | "off"
  /** the daemon */
  readonly serve: ServeConfig
  /** by the driver's `id` or `id@major`: how its users log in, where the host does that itself */
  readonly logins: Readonly<Record<string, OAuthSettings>>
  /** of MCP servers that run elsewhere and say themselves where their tokens come from */
  readonly mcpLogins: McpLogins
  /** where secrets are kept; absent: in a file of the data folder */
  readonly vault?: KvSettings
  /** where what outlives a process is remembered; absent: in a file of the data folder */
  readonly store?: StoreConfig
  /** how large the log becomes before it is closed as a part, and how long parts are kept; absent: for ever */
  readonly receipts: { readonly segmentBytes: number; readonly keepMs?: number }
  /** what calls may cost, and how many there may be */
  readonly budgets: readonly Budget[]
  /** for tools that name a class of data; absent: classes are recorded and nothing else */
  readonly dataClasses?: readonly DataClass[]
  /** of callers' contexts, keys that the host fills itself */
  readonly context: readonly BoundContext[]
  /** what tools of other formats cannot say of themselves, by the tool's id */
  readonly annotations: Annotations
  /** modules of Amplifier's whose tools are offered, and those that are asked of each of their calls */
  readonly amplifier: readonly AmplifierModule[]
  readonly amplifierHooks: readonly AmplifierHook[]
  /** what no tool, driver or action is registered beyond; a part that is absent is not bounded */
  readonly ceiling: {
    readonly riskLevel?: number
    readonly mutates?: readonly string[]
    /** canonical */
    readonly egress?: readonly string[]
    readonly secrets?: readonly string[]
  }
}

export const defaultConfig: OperatorConfig = Object.freeze({
  manifests: Object.freeze([]),
  backend: "namespace",
  docker: Object.freeze({ rootfs: "host", pool: 0 }),
  limits: Object.freeze({}),
  egress: Object.freeze({ services: Object.freeze({}), private: Object.freeze([]) }),
  undeclaredEgress: "report",
  undeclaredWrite: "refuse",
  policyTags: Object.freeze({ allow: Object.freeze([]), deny: Object.freeze([]) }),
  regionAllowsGlobal: false,
  approvals: Object.freeze({
    onMutate: "ask",
    holdMs: hostLimits.holdMs.value,
    holdCount: hostLimits.holdCount.value,
    holdBytes: hostLimits.holdBytes.value,
  }),
  receipts: Object.freeze({ segmentBytes: hostLimits.auditSegmentBytes.value }),
  env: Object.freeze({}),
  install: Object.freeze({
    npmRegistry: "https://registry.npmjs.org/",
    pipIndex: "https://pypi.org/simple/",
    cargoRegistry: "https://index.crates.io/",
    goProxy: "https://proxy.golang.org/",
    hosts: Object.freeze([]),
    onDemand: false,
    withoutHash: "refuse",
    prefer: "system",
    stallMs: installLimits.stallMs.value,
    downloadMs: installLimits.downloadMs.value,
    diskBytes: installLimits.diskBytes.value,
    wallMs: installLimits.wallMs.value,
  }),
  interpreters: Object.freeze({}),
  builtinHosts: Object.freeze([]),
  readOnlyHttp: "report",
  serve: defaultServe,
  logins: Object.freeze({}),
  mcpLogins: Object.freeze({ register: false }),
  budgets: Object.freeze([]),
  context: Object.freeze([]),
  annotations: Object.freeze({}),
  amplifier: Object.freeze([]),
  amplifierHooks: Object.freeze([]),
  ceiling: Object.freeze({}),
})
