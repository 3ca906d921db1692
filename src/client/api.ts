/**
 * The API, as the daemon's document tells it. Made by `npm run client-types`, never by hand.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** The result of a call, whatever its end */
export type Envelope = {
  readonly ok: boolean
  /** ULID */
  readonly call: string
  /** id@major (`caisson:run@1`: a command of `run`); absent when no driver was chosen */
  readonly driver?: string
  readonly effects: readonly {
    readonly kind:
      | "create"
      | "modify"
      | "delete"
      | "mkdir"
      | "rmdir"
      | "chmod"
      | "symlink"
      | "rename"
      | "hardlink"
      | "xattr"
      | "touch"
      | "special"
    /** relative to the workspace */
    readonly path: string
    /** covered by the contract */
    readonly declared: boolean
    /** now in the workspace */
    readonly committed: boolean
    readonly before?: string
    readonly after?: string
    readonly mode?: { readonly before?: number; readonly after?: number }
    readonly from?: string
    readonly size?: number
    readonly target?: string
    readonly directory?: true
    readonly refused?: string
  }[]
  readonly denied: readonly {
    readonly layer: "egress" | "exec" | "fs" | "limit"
    readonly reason: string
    readonly target: string
    readonly count: number
    readonly message: string
    readonly hint: string
  }[]
  readonly receipt: string
  readonly notes?: readonly string[]
  /** of a call that was observed: what it asked for, and what became of it */
  readonly access?: {
    readonly means: "seccomp" | "none"
    readonly reads: readonly {
      readonly path: string
      readonly where: "workspace" | "home" | "scratch" | "system" | "outside"
      readonly verdict: "allowed" | "denied" | "absent" | "discarded"
      readonly reason?: string
      readonly folder?: true
      readonly count: number
      readonly bytes?: number
    }[]
    readonly writes: readonly {
      readonly path: string
      readonly where: "workspace" | "home" | "scratch" | "system" | "outside"
      readonly verdict: "allowed" | "denied" | "absent" | "discarded"
      readonly reason?: string
      readonly folder?: true
      readonly count: number
      readonly bytes?: number
    }[]
    readonly programs: readonly {
      readonly name: string
      readonly path: string
      readonly verdict: "allowed" | "denied" | "absent" | "discarded"
      readonly reason?: string
      readonly count: number
    }[]
    readonly hosts: readonly {
      readonly target: string
      readonly verdict: "allowed" | "denied"
      readonly reason?: string
      readonly count: number
      readonly bytes_out?: number
      readonly bytes_in?: number
    }[]
    readonly seen: number
    readonly lost: number
  }
} & (
  | {
      readonly ok?: true
      readonly value: Json
      /** the end of what the program said beside its value */
      readonly stderr?: string
    }
  | {
      readonly ok?: false
      readonly error: {
        /** a reason code, or domain:code from the tool */ readonly code: string
        readonly class: "invalid" | "routing" | "needs-action" | "denied" | "violation" | "tool" | "infrastructure"
        readonly message: string
        readonly retryable: boolean
        readonly hint: string
        readonly details: { readonly [name: string]: Json }
      }
      /** the effects are held; approving commits exactly those */
      readonly approval?: {
        readonly id: string
        /** of the API */
        readonly url: string
        readonly expires: string
      }
    }
)

/** Why a request was not served */
export type Problem = {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly hint: string
  readonly errors?: readonly { readonly path: string; readonly message: string; readonly fix: string }[]
}

export interface Operations {
  /** Run one tool call, sealed */
  readonly makeCall: {
    readonly request: {
      readonly headers?: {
        readonly "idempotency-key"?: string
        readonly prefer?: string
        readonly traceparent?: string
        readonly "caisson-approved"?: "yes"
      }
      readonly body: {
        /** `id`, or `id@major` */ readonly tool: string
        readonly input?: Json
        /** absolute path of a folder */
        readonly workspace?: string
        readonly context?: { readonly [name: string]: Json }
        /** run, show the effects, commit nothing */
        readonly plan?: boolean
        readonly driver?: string
        /** record what it asks for: files, programs, hosts (`access` of the envelope) */
        readonly observe?: boolean
      }
    }
    readonly answer: Envelope | { readonly call: string; readonly state: "running" }
  }
  /** Calls that can be told of, the latest first */
  readonly listCalls: {
    readonly request: { readonly query?: { readonly limit?: number } }
    readonly answer: {
      readonly calls: readonly {
        readonly call: string
        readonly user: string
        readonly tool: string
        readonly workspace: string
        readonly state: "running" | "settled"
        readonly began: string
        readonly ended?: string
        readonly envelope?: Envelope
      }[]
    }
  }
  /** One call, with its envelope once it has ended */
  readonly getCall: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly call: string
      readonly user: string
      readonly tool: string
      readonly workspace: string
      readonly state: "running" | "settled"
      readonly began: string
      readonly ended?: string
      readonly envelope?: Envelope
    }
  }
  /** End a call that runs; nothing of it is committed */
  readonly cancelCall: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: { readonly call: string; readonly state: "running" }
  }
  /** What a held call or a plan would change, or a call made lately changed, with what files hold before and after */
  readonly callDiff: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly changes: readonly {
        readonly kind: string
        readonly path: string
        readonly declared: boolean
        readonly diff?: string
        readonly note?: string
        readonly mode?: string
        readonly target?: string
        readonly from?: string
      }[]
    }
  }
  /** What happens in a call, as server-sent events; `Last-Event-ID` goes on where one was */
  readonly callEvents: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly headers?: { readonly "last-event-id"?: string }
    }
    readonly answer: undefined
  }
  /** Tools that the caller may use, and whether each can be served */
  readonly listTools: {
    readonly request: Record<never, never>
    readonly answer: {
      readonly tools: readonly {
        readonly id: string
        readonly version: string
        readonly major: number
        readonly name: string
        readonly description: string
        readonly inputs: { readonly [name: string]: Json }
        readonly outputs: Json
        readonly inputsFiles?: { readonly [name: string]: Json }
        readonly outputsFiles?: { readonly [name: string]: Json }
        readonly mutates: readonly string[]
        readonly approval: string
        readonly risk_level: number
        readonly tags: readonly string[]
        readonly timeout_ms: number
        readonly examples: readonly { readonly [name: string]: Json }[]
        /** where its manifest lies; for the operator */
        readonly file?: string
        readonly drivers: readonly string[]
        readonly unauthed: number
        readonly unavailable: number
        readonly availability: {
          readonly available: boolean
          readonly version?: string
          readonly code?: string
          readonly reason?: string
          readonly fix?: string
        }
      }[]
      readonly unloaded: readonly {
        readonly file: string
        readonly id?: string
        readonly tools: readonly string[]
        readonly availability: {
          readonly available: boolean
          readonly version?: string
          readonly code?: string
          readonly reason?: string
          readonly fix?: string
        }
      }[]
      readonly diagnostics: readonly {
        readonly severity: "error" | "warning"
        readonly rule: string
        readonly file: string
        readonly path: string
        readonly message: string
        readonly fix: string
      }[]
    }
  }
  /** One tool, by `id` or `id@major` */
  readonly getTool: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly version: string
      readonly major: number
      readonly name: string
      readonly description: string
      readonly inputs: { readonly [name: string]: Json }
      readonly outputs: Json
      readonly inputsFiles?: { readonly [name: string]: Json }
      readonly outputsFiles?: { readonly [name: string]: Json }
      readonly mutates: readonly string[]
      readonly approval: string
      readonly risk_level: number
      readonly tags: readonly string[]
      readonly timeout_ms: number
      readonly examples: readonly { readonly [name: string]: Json }[]
      /** where its manifest lies; for the operator */
      readonly file?: string
      readonly drivers: readonly string[]
      readonly unauthed: number
      readonly unavailable: number
      readonly availability: {
        readonly available: boolean
        readonly version?: string
        readonly code?: string
        readonly reason?: string
        readonly fix?: string
      }
    }
  }
  /** Drivers of tools that the caller may use */
  readonly listDrivers: {
    readonly request: Record<never, never>
    readonly answer: {
      readonly drivers: readonly {
        readonly id: string
        readonly version: string
        readonly major: number
        readonly kind: "cli" | "http" | "mcp" | "sdk" | "builtin"
        readonly name: string
        readonly description: string
        readonly implements: readonly string[]
        readonly egress: readonly string[]
        readonly region: readonly string[]
        readonly region_declared: boolean
        readonly policy_tags: readonly string[]
        /** where its manifest lies; for the operator */
        readonly file?: string
        readonly availability: {
          readonly available: boolean
          readonly version?: string
          readonly code?: string
          readonly reason?: string
          readonly fix?: string
        }
      }[]
      readonly unloaded: readonly {
        readonly file: string
        readonly id?: string
        readonly tools: readonly string[]
        readonly availability: {
          readonly available: boolean
          readonly version?: string
          readonly code?: string
          readonly reason?: string
          readonly fix?: string
        }
      }[]
      readonly diagnostics: readonly {
        readonly severity: "error" | "warning"
        readonly rule: string
        readonly file: string
        readonly path: string
        readonly message: string
        readonly fix: string
      }[]
    }
  }
  /** One driver, by `id` or `id@major` */
  readonly getDriver: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly version: string
      readonly major: number
      readonly kind: "cli" | "http" | "mcp" | "sdk" | "builtin"
      readonly name: string
      readonly description: string
      readonly implements: readonly string[]
      readonly egress: readonly string[]
      readonly region: readonly string[]
      readonly region_declared: boolean
      readonly policy_tags: readonly string[]
      /** where its manifest lies; for the operator */
      readonly file?: string
      readonly availability: {
        readonly available: boolean
        readonly version?: string
        readonly code?: string
        readonly reason?: string
        readonly fix?: string
      }
    }
  }
  /** Which driver would serve a call, why each other was dropped, and the profile that it would get */
  readonly explainCall: {
    readonly request: {
      readonly body: {
        /** `id`, or `id@major` */ readonly tool: string
        readonly input?: Json
        /** absolute path of a folder */
        readonly workspace?: string
        readonly context?: { readonly [name: string]: Json }
        /** run, show the effects, commit nothing */
        readonly plan?: boolean
        readonly driver?: string
        /** record what it asks for: files, programs, hosts (`access` of the envelope) */
        readonly observe?: boolean
      }
    }
    readonly answer: {
      readonly tool: string
      readonly selected?: string
      readonly error?: {
        readonly code: string
        readonly class: string
        readonly message: string
        readonly retryable: boolean
        readonly hint: string
        readonly details: { readonly [name: string]: Json }
      }
      readonly rows: readonly {
        readonly driver: string
        readonly kind: "cli" | "http" | "mcp" | "sdk" | "builtin"
        readonly phase: "candidates" | "capability" | "policy" | "pin" | "rank" | "selected"
        readonly reason: string
        readonly code?: string
        readonly fix?: string
        readonly costUnitsPerCall?: number
        readonly currency?: string
        readonly costClass?: string
      }[]
      readonly argv?: readonly string[]
      readonly egress?: readonly string[]
      readonly mutates?: readonly string[]
      readonly approval?: { readonly class: string; readonly effects: "commit" | "ask" }
      readonly profile?: { readonly [name: string]: Json }
      readonly profileDigest?: string
    }
  }
  /** Calls that wait for an answer: about their effects, or before they run */
  readonly listApprovals: {
    readonly request: Record<never, never>
    readonly answer: {
      readonly approvals: readonly {
        readonly id: string
        readonly tool: string
        readonly driver: string
        readonly user: string
        readonly workspace: string
        readonly approval: string
        readonly held: string
        readonly expires: string
        readonly changes: number
        readonly bytes: number
        /** nothing was run: may the call be made? absent: about what it changed */
        readonly about?: "call"
      }[]
    }
  }
  /** One held call, with every effect, deletions first */
  readonly getApproval: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly tool: string
      readonly driver: string
      readonly user: string
      readonly workspace: string
      readonly approval: string
      readonly held: string
      readonly expires: string
      readonly changes: number
      readonly bytes: number
      /** nothing was run: may the call be made? absent: about what it changed */
      readonly about?: "call"
      readonly message?: string
      readonly input?: { readonly [name: string]: Json }
      readonly context?: { readonly [name: string]: Json }
      readonly cost?: { readonly [name: string]: Json }
      readonly intact: boolean
      readonly mutates?: readonly string[]
      readonly effects: readonly { readonly [name: string]: Json }[]
      readonly denied: readonly { readonly [name: string]: Json }[]
      readonly content: readonly {
        readonly kind: string
        readonly path: string
        readonly declared: boolean
        readonly diff?: string
        readonly note?: string
        readonly mode?: string
        readonly target?: string
        readonly from?: string
      }[]
    }
  }
  /** Commit exactly what was held, or throw it away; of a call that was not run: let it be made once, or not */
  readonly decideApproval: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly body: {
        readonly decision: "approve" | "deny"
        /** why, for the receipt of the decision */
        readonly reason?: string
      }
    }
    readonly answer: Envelope
  }
  /** Tokens, without what they open with */
  readonly listTokens: {
    readonly request: { readonly query?: { readonly tenant?: string } }
    readonly answer: {
      readonly tokens: readonly {
        readonly id: string
        readonly tenant: string
        readonly user: string
        readonly label: string
        readonly agent: boolean
        readonly workspaces: "any" | readonly string[]
        readonly roles: readonly string[]
        readonly made: string
        readonly by: string
        readonly expires?: string
        readonly revoked?: string
      }[]
    }
  }
  /** A new token; what it opens with is told here and never again */
  readonly createToken: {
    readonly request: {
      readonly body: {
        readonly user?: string
        readonly tenant?: string
        readonly label?: string
        /** made for a program: it can never approve. Default: true */
        readonly agent?: boolean
        readonly workspaces?: "any" | readonly string[]
        readonly roles?: readonly ("caller" | "approver" | "operator" | "act-for" | "pin")[]
        readonly days?: number
      }
    }
    readonly answer: {
      readonly id: string
      readonly tenant: string
      readonly user: string
      readonly label: string
      readonly agent: boolean
      readonly workspaces: "any" | readonly string[]
      readonly roles: readonly string[]
      readonly made: string
      readonly by: string
      readonly expires?: string
      readonly revoked?: string
      readonly token: string
    }
  }
  /** A token that opens nothing from now on */
  readonly revokeToken: {
    readonly request: { readonly params: { readonly id: string }; readonly query?: { readonly tenant?: string } }
    readonly answer: undefined
  }
  /** Names and scopes of secrets */
  readonly listSecrets: {
    readonly request: Record<never, never>
    readonly answer: { readonly secrets: readonly { readonly [name: string]: Json }[] }
  }
  /** Keep a secret, or another value of one */
  readonly setSecret: {
    readonly request: {
      readonly body: {
        readonly slug: string
        readonly value: string
        readonly user?: string
        readonly shared?: boolean
        readonly workspace?: string
        readonly driver?: string
      }
    }
    readonly answer: undefined
  }
  /** Forget a secret */
  readonly removeSecret: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly query?: {
        readonly user?: string
        readonly shared?: boolean
        readonly workspace?: string
        readonly driver?: string
      }
    }
    readonly answer: { readonly removed: boolean }
  }
  /** Whether the daemon lives and can serve; `?ready` answers 503 where it cannot */
  readonly health: {
    readonly request: { readonly query?: { readonly ready?: string } }
    readonly answer: {
      readonly status: "ok" | "degraded" | "unready"
      readonly live: true
      readonly ready: boolean
      readonly causes: readonly { readonly cause: string; readonly message: string; readonly fix: string }[]
    }
  }
  /** Prometheus metrics; over TCP for operators, unless `serve.metrics` is open */
  readonly metrics: {
    readonly request: Record<never, never>
    readonly answer: string
  }
  /** Manifests and config, read again: taken whole for calls from now on, or not at all; for operators */
  readonly reload: {
    readonly request: Record<never, never>
    readonly answer: { readonly generation: number; readonly tools: number; readonly drivers: number }
  }
  /** Grants, those that end first before the others */
  readonly listGrants: {
    readonly request: Record<never, never>
    readonly answer: {
      readonly grants: readonly {
        readonly id: string
        readonly tenant: string
        readonly user: string
        readonly tool: string
        readonly workspace: string
        readonly uses: number
        readonly used: number
        readonly made: string
        readonly by: string
        readonly expires: string
        readonly revoked?: string
        readonly reason: string
        readonly good: boolean
      }[]
    }
  }
  /** A yes beforehand: this tool, on this workspace, so many times, until then */
  readonly createGrant: {
    readonly request: {
      readonly body: {
        /** `id`, or `id@major` */ readonly tool: string
        /** for whose calls; another user's takes the role approver */
        readonly user?: string
        /** absolute path of a folder, or `any` */
        readonly workspace: string
        /** default: 1 */
        readonly uses?: number
        /** a moment; else `days` */
        readonly until?: string
        /** default: 1 */
        readonly days?: number
        readonly reason?: string
      }
    }
    readonly answer: {
      readonly id: string
      readonly tenant: string
      readonly user: string
      readonly tool: string
      readonly workspace: string
      readonly uses: number
      readonly used: number
      readonly made: string
      readonly by: string
      readonly expires: string
      readonly revoked?: string
      readonly reason: string
      readonly good: boolean
    }
  }
  /** A grant that answers nothing from now on */
  readonly revokeGrant: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: undefined
  }
  /** What tools ask people and nobody has answered */
  readonly listQuestions: {
    readonly request: Record<never, never>
    readonly answer: {
      readonly questions: readonly {
        readonly id: string
        readonly tool: string
        readonly user: string
        readonly message: string
        readonly input: { readonly [name: string]: Json }
        readonly form: { readonly [name: string]: Json }
        readonly asked: string
        readonly expires: string
      }[]
    }
  }
  /** A person's answer, which fits the form; the call that waits for it goes on */
  readonly answerQuestion: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly body: {
        /** JSON that fits the question's `form` */ readonly answer: Json
      }
    }
    readonly answer: undefined
  }
  /** Receipts of calls and of decisions, by what they say */
  readonly listReceipts: {
    readonly request: {
      readonly query?: {
        readonly call?: string
        readonly tool?: string
        readonly user?: string
        readonly verdict?: string
        readonly since?: string
        readonly until?: string
        readonly wrote?: string
        readonly host?: string
        readonly denied?: boolean
        readonly limit?: number
        readonly cursor?: string
      }
    }
    readonly answer: {
      readonly receipts: readonly {
        readonly $schema: string
        readonly doctype: string
        readonly seq: number
        readonly ts: string
        readonly actor: { readonly id: string; readonly role?: string }
        readonly action: string
        readonly subject: { readonly kind: string; readonly ref?: string; readonly path?: string }
        readonly metadata?: { readonly [name: string]: Json }
        readonly prevHash: string
        readonly hash: string
        readonly hashAlg: string
      }[]
      readonly next?: string
    }
  }
  /** What is on record of one call: its receipt, and those of decisions about it */
  readonly callReceipts: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly query?: { readonly limit?: number; readonly cursor?: string }
    }
    readonly answer: {
      readonly receipts: readonly {
        readonly $schema: string
        readonly doctype: string
        readonly seq: number
        readonly ts: string
        readonly actor: { readonly id: string; readonly role?: string }
        readonly action: string
        readonly subject: { readonly kind: string; readonly ref?: string; readonly path?: string }
        readonly metadata?: { readonly [name: string]: Json }
        readonly prevHash: string
        readonly hash: string
        readonly hashAlg: string
      }[]
      readonly next?: string
    }
  }
  /** The log, a line an entry, the first first; for operators */
  readonly exportReceipts: {
    readonly request: Record<never, never>
    readonly answer: string
  }
  /** Where the logins of the caller's user stand, in one workspace */
  readonly listLogins: {
    readonly request: { readonly query: { readonly workspace: string } }
    readonly answer: {
      readonly logins: readonly {
        readonly driver: string
        readonly user: string
        readonly workspace: string
        readonly state: string
        readonly account?: string
        readonly expires?: string
        readonly proven?: string
        readonly refreshed?: string
        readonly pending?: readonly string[]
        readonly why?: string
        readonly next?: string
      }[]
    }
  }
  /** Set a driver up and log in, for the caller's user in one workspace */
  readonly beginLogin: {
    readonly request: {
      readonly body: {
        readonly driver: string
        /** absolute path of a folder */
        readonly workspace: string
        /** by the id of the question; also of one that is not asked yet */
        readonly answers?: { readonly [name: string]: string }
      }
    }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly workspace: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly pages?: readonly {
        readonly url: string
        readonly code?: string
        readonly direct?: string
        readonly through?: string
        readonly from: "host" | "program"
      }[]
      readonly prompts?: readonly {
        readonly id: string
        readonly text: string
        readonly type: "text" | "secret" | "boolean" | "select"
        readonly default?: string
        readonly options?: readonly { readonly value: string; readonly label: string }[]
      }[]
      /** what the driver's program printed, as plain text: a stranger's words */
      readonly terminal?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly signed_in?: boolean
      readonly login?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** Sign out: what the login left is wiped */
  readonly logout: {
    readonly request: { readonly query: { readonly driver: string; readonly workspace: string } }
    readonly answer: { readonly driver: string; readonly was: string; readonly revoked?: string }
  }
  /** How far a login is, and what it wants of the person */
  readonly getLogin: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly workspace: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly pages?: readonly {
        readonly url: string
        readonly code?: string
        readonly direct?: string
        readonly through?: string
        readonly from: "host" | "program"
      }[]
      readonly prompts?: readonly {
        readonly id: string
        readonly text: string
        readonly type: "text" | "secret" | "boolean" | "select"
        readonly default?: string
        readonly options?: readonly { readonly value: string; readonly label: string }[]
      }[]
      /** what the driver's program printed, as plain text: a stranger's words */
      readonly terminal?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly signed_in?: boolean
      readonly login?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** A person's answers, and what they type for the program */
  readonly answerLogin: {
    readonly request: {
      readonly params: { readonly id: string }
      readonly body: {
        /** by the id of the question; also of one that is not asked yet */
        readonly answers?: { readonly [name: string]: string }
        readonly terminal?: string
      }
    }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly workspace: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly pages?: readonly {
        readonly url: string
        readonly code?: string
        readonly direct?: string
        readonly through?: string
        readonly from: "host" | "program"
      }[]
      readonly prompts?: readonly {
        readonly id: string
        readonly text: string
        readonly type: "text" | "secret" | "boolean" | "select"
        readonly default?: string
        readonly options?: readonly { readonly value: string; readonly label: string }[]
      }[]
      /** what the driver's program printed, as plain text: a stranger's words */
      readonly terminal?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly signed_in?: boolean
      readonly login?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** End a login that is under way; nobody is signed in by it */
  readonly cancelLogin: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly workspace: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly pages?: readonly {
        readonly url: string
        readonly code?: string
        readonly direct?: string
        readonly through?: string
        readonly from: "host" | "program"
      }[]
      readonly prompts?: readonly {
        readonly id: string
        readonly text: string
        readonly type: "text" | "secret" | "boolean" | "select"
        readonly default?: string
        readonly options?: readonly { readonly value: string; readonly label: string }[]
      }[]
      /** what the driver's program printed, as plain text: a stranger's words */
      readonly terminal?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly signed_in?: boolean
      readonly login?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** Install the packages of a driver, and check its version */
  readonly beginInstall: {
    readonly request: { readonly body: { readonly driver: string } }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly installed?: boolean
      readonly install?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** How far an install is, and how it ended */
  readonly getInstall: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly installed?: boolean
      readonly install?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** End an install that is under way */
  readonly cancelInstall: {
    readonly request: { readonly params: { readonly id: string } }
    readonly answer: {
      readonly id: string
      readonly driver: string
      readonly state: "running" | "ended"
      readonly began: string
      readonly ended?: string
      readonly progress?: { readonly [name: string]: Json }
      readonly installed?: boolean
      readonly install?: { readonly [name: string]: Json }
      readonly error?: { readonly [name: string]: Json }
    }
  }
  /** This document */
  readonly document: {
    readonly request: Record<never, never>
    readonly answer: { readonly [name: string]: Json }
  }
}

export const routes = {
  makeCall: { method: "POST", path: "/v1/calls" },
  listCalls: { method: "GET", path: "/v1/calls" },
  getCall: { method: "GET", path: "/v1/calls/{id}" },
  cancelCall: { method: "DELETE", path: "/v1/calls/{id}" },
  callDiff: { method: "GET", path: "/v1/calls/{id}/diff" },
  callEvents: { method: "GET", path: "/v1/calls/{id}/events" },
  listTools: { method: "GET", path: "/v1/tools" },
  getTool: { method: "GET", path: "/v1/tools/{id}" },
  listDrivers: { method: "GET", path: "/v1/drivers" },
  getDriver: { method: "GET", path: "/v1/drivers/{id}" },
  explainCall: { method: "POST", path: "/v1/why" },
  listApprovals: { method: "GET", path: "/v1/approvals" },
  getApproval: { method: "GET", path: "/v1/approvals/{id}" },
  decideApproval: { method: "POST", path: "/v1/approvals/{id}" },
  listTokens: { method: "GET", path: "/v1/tokens" },
  createToken: { method: "POST", path: "/v1/tokens" },
  revokeToken: { method: "DELETE", path: "/v1/tokens/{id}" },
  listSecrets: { method: "GET", path: "/v1/secrets" },
  setSecret: { method: "POST", path: "/v1/secrets" },
  removeSecret: { method: "DELETE", path: "/v1/secrets/{id}" },
  health: { method: "GET", path: "/healthz" },
  metrics: { method: "GET", path: "/metrics" },
  reload: { method: "POST", path: "/v1/reload" },
  listGrants: { method: "GET", path: "/v1/grants" },
  createGrant: { method: "POST", path: "/v1/grants" },
  revokeGrant: { method: "DELETE", path: "/v1/grants/{id}" },
  listQuestions: { method: "GET", path: "/v1/questions" },
  answerQuestion: { method: "POST", path: "/v1/questions/{id}" },
  listReceipts: { method: "GET", path: "/v1/receipts" },
  callReceipts: { method: "GET", path: "/v1/calls/{id}/receipts" },
  exportReceipts: { method: "GET", path: "/v1/receipts/export" },
  listLogins: { method: "GET", path: "/v1/logins" },
  beginLogin: { method: "POST", path: "/v1/logins" },
  logout: { method: "DELETE", path: "/v1/logins" },
  getLogin: { method: "GET", path: "/v1/logins/{id}" },
  answerLogin: { method: "POST", path: "/v1/logins/{id}" },
  cancelLogin: { method: "DELETE", path: "/v1/logins/{id}" },
  beginInstall: { method: "POST", path: "/v1/installs" },
  getInstall: { method: "GET", path: "/v1/installs/{id}" },
  cancelInstall: { method: "DELETE", path: "/v1/installs/{id}" },
  document: { method: "GET", path: "/openapi.json" },
} as const satisfies Readonly<Record<keyof Operations, { readonly method: string; readonly path: string }>>
