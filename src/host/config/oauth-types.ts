/** What an OAuth login of a driver is made of, whoever said it: the operator, or an AUTH.md beside the driver. Types alone. */

/** `program`: the driver's own program does it; what is written says where its tokens come from. */
export type OAuthFlow = "device-code" | "authorization-code" | "client-credentials" | "service-auth" | "program"

/** Addresses of a provider, in the words of RFC 8414. */
interface OAuthEndpoints {
  readonly authorization?: string
  readonly token?: string
  readonly deviceAuthorization?: string
  /** where `service-auth` asks for a person's approval */
  readonly identity?: string
  readonly revocation?: string
}

/** How this host is known to authorization servers that MCP servers name, where no driver's own login says so. */
export interface McpLogins {
  /** the address of a Client ID Metadata Document that the operator publishes */
  readonly clientDocument?: string
  /** this host may register itself */
  readonly register: boolean
  /** the port of this machine that a person's browser comes back to; absent: any */
  readonly redirectPort?: number
}

export interface OAuthSettings {
  readonly flow: OAuthFlow
  /** asked for its endpoints; what is written in `endpoints` counts for more */
  readonly issuer?: string
  readonly endpoints: OAuthEndpoints
  /** whose published places tell the endpoints, where no issuer is named (AIP-50 §Discovery) */
  readonly server?: string
  /** where tokens are renewed, where that is another place than where they are given out */
  readonly refreshAt?: string
  /** names that may be asked without TLS; absent: any, as the operator wrote them */
  readonly plainHosts?: readonly string[]
  /** the plane that its tokens are for: they are of no use on another */
  readonly audience?: string
  /** empty where the program has its own */
  readonly clientId: string
  /** the slug of a secret for everybody, or for this user; absent: a public client */
  readonly clientSecret?: string
  readonly scopes: readonly string[]
  /** whom the provider is to ask, in the manifest's words */
  readonly loginHint?: string
  /** what the tokens are for (RFC 8707), where the provider wants to know */
  readonly resource?: string
  /** the port of this machine that the provider sends a person's browser back to; absent: any */
  readonly redirectPort?: number
  /** the slug that the tokens are kept under; absent: that of the first of `auth.state.env` */
  readonly secret?: string
}
