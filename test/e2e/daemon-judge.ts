/**
 * The daemon's document as a judge of its answers.
 *
 * Guarantees: an answer of an operation has a status that the document names for it, a body of a kind that it names there, and
 * that body is valid against its schema. An address that the document does not have may answer with a problem alone.
 */
import addFormats from "ajv-formats"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"

interface Shown {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { readonly responses: Readonly<Record<string, { readonly content?: object }>> }>>
    >
  >
}
export interface Heard {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly type: string
  readonly text: string
}
/** Undefined: the answer is as the document says. */
export type Judge = (heard: Heard) => string | undefined

const pointer = (...parts: readonly string[]): string =>
  parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")

export const judgeBy = (document: object): Judge => {
  const { paths } = document as Shown
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, "document")
  const compiled = new Map<string, ValidateFunction>()
  const schemaAt = (ref: string): ValidateFunction => {
    const known = compiled.get(ref) ?? ajv.compile({ $ref: `document#/${ref}` })
    compiled.set(ref, known)
    return known
  }
  const templates = Object.keys(paths).map((template) => ({
    template,
    form: new RegExp(`^${template.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+")}$`),
    variables: template.split("{").length,
  }))
  // The one with the fewest variables is the one that is meant.
  const templateOf = (path: string): string | undefined =>
    templates.filter(({ form }) => form.test(path)).sort((a, b) => a.variables - b.variables)[0]?.template
  const bodyFault = (heard: Heard, ref: string): string | undefined => {
    const validate = schemaAt(ref)
    if (validate(/^application\/(?:.*\+)?json/.test(heard.type) ? JSON.parse(heard.text) : heard.text)) return undefined
    return `${ajv.errorsText(validate.errors)}: ${heard.text.slice(0, 500)}`
  }
  const faultOf = (heard: Heard): string | undefined => {
    const type = heard.type.split(";")[0]?.trim() ?? ""
    const template = templateOf(heard.path.split("?")[0] ?? "")
    const operation = template === undefined ? undefined : paths[template]?.[heard.method.toLowerCase()]
    if (template === undefined || operation === undefined) {
      if (type !== "application/problem+json") return `what is not in the document answered with ${type}`
      return bodyFault(heard, pointer("components", "schemas", "Problem"))
    }
    const answer = operation.responses[String(heard.status)]
    if (answer === undefined) return "the status is not in the document"
    if (answer.content === undefined) return heard.text === "" ? undefined : "a body that is not in the document"
    if (!Object.hasOwn(answer.content, type)) return `${type} is not in the document`
    if (type === "text/event-stream") return undefined
    const where = ["paths", template, heard.method.toLowerCase(), "responses", String(heard.status), "content", type]
    return bodyFault(heard, pointer(...where, "schema"))
  }
  return (heard) => {
    const fault = faultOf(heard)
    return fault === undefined ? undefined : `${heard.method} ${heard.path} ${heard.status}: ${fault}`
  }
}
