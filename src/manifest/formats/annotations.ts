/**
 * What an operator adds to a tool of a format that cannot say it: `annotations` in caisson.yaml, by the tool's id.
 *
 * Guarantees: nothing else opens what a format leaves unsaid. An annotation holds for files of folders that the operator
 * vouches for; a stranger's file with the same id gets nothing of it.
 */
import type { Report } from "../values/diagnostics.ts"
import type { JsonObject } from "../base-types.ts"

interface DatabaseAnnotation {
  /** `host:port` */
  readonly address: string
  readonly name: string
  /** with `$1`, `$2`, … (MySQL: `?`): bound, never put into the text */
  readonly statement?: string
  /** fields of the input, in the order of the numbers */
  readonly bind?: readonly string[]
  /** the field of the input that is a statement of its own: read-only, and one alone */
  readonly sql_input?: string
  readonly tls?: boolean
}

export interface Annotation {
  readonly mutates?: readonly string[]
  readonly egress?: readonly string[]
  readonly approval?: string
  readonly risk_level?: number
  readonly idempotent?: boolean
  /** the header that an API key goes into */
  readonly header?: string
  readonly database?: DatabaseAnnotation
}

export type Annotations = Readonly<Record<string, Annotation>>

/** What is closed because nobody said it, as one warning that says how it is opened. */
export const tellClosed = (id: string, closed: readonly string[], path: string, report: Report): void => {
  if (closed.length > 0)
    report.warn(
      "closed-until-annotated",
      path,
      `this format cannot say ${closed.join(" or ")}: nothing of it is allowed until the operator says it`,
      `write it in caisson.yaml, as in \`annotations: { ${id}: { mutates: ["workspace:/notes/*"], egress: [api.example.com], approval: on-mutate } }\`, and name the file's folder under \`manifests\` there`,
    )
}

/** The tool's front matter with what the operator says of it. */
export const annotated = (front: JsonObject, annotation: Annotation | undefined): JsonObject => {
  if (annotation === undefined) return front
  const { mutates, egress, approval, risk_level: risk, idempotent } = annotation
  const requires = front["requires"] as JsonObject | undefined
  return {
    ...front,
    ...(mutates === undefined ? {} : { mutates: [...mutates] }),
    ...(egress === undefined ? {} : { requires: { ...requires, network: [...egress] } }),
    ...(approval === undefined ? {} : { approval }),
    ...(risk === undefined ? {} : { risk_level: risk }),
    ...(idempotent === undefined ? {} : { idempotent }),
  }
}
