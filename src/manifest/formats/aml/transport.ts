/**
 * AML transport → front matter of the driver that serves the tool.
 *
 * Guarantees: where it goes is what the file says and nothing of an input; one that this host cannot carry out becomes a
 * driver that says why, so that the tool is listed with the reason and another driver can be bound to it.
 */
import { withoutEnd } from "../../values/ends.ts"
import type { JsonObject } from "../../base-types.ts"
import { joinPath, shown } from "../../values/diagnostics.ts"
import type { Report } from "../../values/diagnostics.ts"
import { DATABASE_HOSTS } from "../../kinds/database.ts"
import { isObject, object, optionalText, text } from "../../values/fields.ts"
import type { Annotation } from "../annotations.ts"
import type { Credentials } from "./credentials.ts"

export interface Reached {
  /** front matter beside name, id, version and `implements[0].tool`; absent: nothing is made */
  readonly driver?: { readonly top: JsonObject; readonly call: JsonObject }
  /** hosts that the file itself names */
  readonly hosts: readonly string[]
}

const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  lambda: ["aws", "gcp", "azure"],
  "message-queue": ["aws", "gcp", "azure", "kafka"],
}
const ENGINES = ["postgresql", "mysql", "mssql", "bigquery", "snowflake", "rds-data-api"]

/** A driver that is registered, and says why it serves nothing. */
const unavailable = (why: string): NonNullable<Reached["driver"]> => ({
  top: { kind: "builtin", metadata: { unusable: why } },
  call: {},
})

const need = (block: JsonObject, key: string, fix: string, report: Report): string => {
  const value = optionalText(block, key)
  if (value === undefined || value === "")
    report.error("aml-transport-field", joinPath("transport", key), `\`${key}\` is missing`, fix)
  return value ?? ""
}

const among = (block: JsonObject, key: string, known: readonly string[], isNeeded: boolean, report: Report): void => {
  const value = block[key]
  if (value === undefined && !isNeeded) return
  if (typeof value !== "string" || !known.includes(value))
    report.error(
      "aml-transport-field",
      joinPath("transport", key),
      value === undefined ? `\`${key}\` is missing` : `\`${shown(value, 40)}\` is not one of ${known.join(", ")}`,
      `write one of ${known.join(", ")}`,
    )
}

const hostOf = (address: string): string | undefined => {
  if (!URL.canParse(address)) return undefined
  const { protocol, hostname, port } = new URL(address)
  if (protocol !== "https:" && protocol !== "http:") return undefined
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`
}

const authOf = ({ variable }: Credentials): JsonObject =>
  variable === undefined ? {} : { auth: { state: { env: [variable] } } }

const rest = (
  block: JsonObject,
  inputs: JsonObject,
  credentials: Credentials,
  annotation: Annotation | undefined,
  report: Report,
): Reached => {
  const base = need(block, "base_url", "write `base_url: https://api.example.com/v1`", report)
  if (base.endsWith("/"))
    report.error(
      "aml-base-url",
      "transport.base_url",
      "`base_url` ends in a slash",
      `write \`${shown(withoutEnd(base, "/"))}\``,
    )
  const written = need(block, "endpoint", "write `endpoint: GET /items/{id}`", report)
  const found = /^(GET|POST|PUT|PATCH|DELETE) (\/\S*)$/.exec(written)
  if (found === null) {
    if (written !== "")
      report.error(
        "aml-endpoint",
        "transport.endpoint",
        `\`${shown(written)}\` is no method and path`,
        "write `GET /items/{id}`",
      )
    return { hosts: [] }
  }
  const [, method = "GET", path = "/"] = found
  const fields = Object.keys(object(inputs, "properties"))
  const inPath = new Set<string>()
  const endpoint = path.replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => {
    if (!fields.includes(name)) {
      report.error(
        "aml-endpoint",
        "transport.endpoint",
        `\`${shown(whole, 40)}\` is no field of the input`,
        "name a property of `interface.input`",
      )
      return "x"
    }
    inPath.add(name)
    return `\${input.${name}}`
  })
  const left = fields.filter((name) => !inPath.has(name) && /^[A-Za-z_][\w-]*$/.test(name))
  const values = Object.fromEntries(left.map((name) => [name, `\${input.${name}}`]))
  const bodiless = method === "GET" || method === "DELETE"
  const host = hostOf(base)
  const { scheme, variable } = credentials
  const headers: JsonObject =
    variable !== undefined && scheme === "api-key"
      ? { headers: { [annotation?.header ?? "X-API-Key"]: `\${secrets.${variable}}` } }
      : {}
  return {
    hosts: host === undefined ? [] : [host],
    driver: {
      top: {
        kind: "http",
        base_url: base,
        network: { egress: host === undefined ? [] : [host] },
        ...authOf(credentials),
      },
      call: {
        http: {
          endpoint,
          method,
          ...headers,
          ...(bodiless && left.length > 0 ? { query_template: values } : {}),
          ...(bodiless || inPath.size === 0 ? {} : { body_template: values }),
          ...(method === "DELETE" ? { body_template: {} } : {}),
        },
      },
    },
  }
}

const mcp = (block: JsonObject, credentials: Credentials, report: Report): Reached => {
  const url = need(block, "url", "write `url: https://tools.example.com/mcp`", report)
  const name = need(block, "tool_name", "write the server's own name of the tool", report)
  const protocol = need(block, "protocol_version", 'write `protocol_version: "2025-11-25"`', report)
  const host = hostOf(url)
  return {
    hosts: host === undefined ? [] : [host],
    driver: {
      top: {
        kind: "mcp",
        server: { kind: "remote", url },
        transport: "http",
        ...(protocol === "" ? {} : { protocol_version: protocol }),
        network: { egress: host === undefined ? [] : [host] },
        ...authOf(credentials),
      },
      call: { mcp: { tool_name: name } },
    },
  }
}

const HOOK = "a DRIVER.md of the operator's that implements the tool serves it"

const elsewhere = (block: JsonObject, type: string, report: Report): Reached => {
  among(block, "provider", PROVIDERS[type] ?? [], true, report)
  if (type === "lambda") {
    need(block, "function_id", "write the function's name or ARN", report)
    among(block, "invocation_type", ["RequestResponse", "Event"], true, report)
    among(block, "payload_format", ["json", "raw"], false, report)
  } else {
    need(block, "queue_url", "write the queue's address", report)
    among(block, "message_format", ["json", "avro"], false, report)
  }
  const what = type === "lambda" ? "functions of a cloud (`lambda`)" : "message queues (`message-queue`)"
  const provider = optionalText(block, "provider") ?? "none"
  return { hosts: [], driver: unavailable(`this host does not call ${what}, here of ${shown(provider, 20)}; ${HOOK}`) }
}

const database = (
  block: JsonObject,
  credentials: Credentials,
  { id, annotation }: { readonly id: string; readonly annotation: Annotation | undefined },
  report: Report,
): Reached => {
  among(block, "engine", ENGINES, true, report)
  among(block, "query_method", ["parameterised-sql", "orm"], true, report)
  const engine = text(block, "engine")
  const said = annotation?.database
  if (engine !== "postgresql" && engine !== "mysql")
    return { hosts: [], driver: unavailable(`this host speaks no ${shown(engine, 20)}; ${HOOK}`) }
  if (text(block, "query_method") === "orm")
    return { hosts: [], driver: unavailable(`\`orm\` names a query of a program that is not in the file; ${HOOK}`) }
  if (said === undefined)
    return {
      hosts: [],
      driver: unavailable(
        `AML says neither where the database is nor what is asked of it; write \`annotations: { ${id}: { database: { address: "db.example.com:5432", name: shop, statement: "select … where id = $1", bind: [id] } } }\` in caisson.yaml`,
      ),
    }
  if (said.statement === undefined && said.sql_input === undefined)
    return {
      hosts: [],
      driver: unavailable(
        "its annotation has neither `database.statement` nor `database.sql_input`, so there is nothing to ask",
      ),
    }
  return {
    hosts: [`tcp://${said.address}`],
    driver: {
      top: {
        kind: "builtin",
        network: { egress: [`tcp://${said.address}`] },
        ...authOf(credentials),
      },
      call: { builtin: { host_id: DATABASE_HOSTS[engine], database: said as unknown as JsonObject } },
    },
  }
}

export const readTransport = (
  front: JsonObject,
  inputs: JsonObject,
  credentials: Credentials,
  about: { readonly id: string; readonly annotation: Annotation | undefined },
  report: Report,
): Reached => {
  const { transport: block } = front
  if (!isObject(block)) return { hosts: [] }
  const type = text(block, "type")
  const reached =
    type === "rest-api"
      ? rest(block, inputs, credentials, about.annotation, report)
      : type === "mcp"
        ? mcp(block, credentials, report)
        : type === "database"
          ? database(block, credentials, about, report)
          : elsewhere(block, type, report)
  if (credentials.unusable === undefined || reached.driver === undefined) return reached
  return { ...reached, driver: unavailable(`${credentials.unusable}; ${HOOK}`) }
}
