/** The JSON Schema keywords that are read, what each must look like, and those that are refused by name. */
export type Shape =
  | "schema"
  | "schemas"
  | "schema-map"
  | "string"
  | "string-list"
  | "string-list-map"
  | "count"
  | "number"
  | "boolean"
  | "any"
  | "enum"
  | "type"
  | "pattern"
  | "pattern-map"
  | "ref"

export const KEYWORDS: Readonly<Record<string, Shape>> = {
  $ref: "ref",
  $defs: "schema-map",
  definitions: "schema-map",
  $comment: "any",
  title: "any",
  description: "any",
  default: "any",
  examples: "any",
  deprecated: "any",
  readOnly: "any",
  writeOnly: "any",
  format: "string",
  contentEncoding: "any",
  contentMediaType: "any",
  contentSchema: "any",
  type: "type",
  enum: "enum",
  const: "any",
  nullable: "boolean",
  allOf: "schemas",
  anyOf: "schemas",
  oneOf: "schemas",
  not: "schema",
  if: "schema",
  then: "schema",
  else: "schema",
  properties: "schema-map",
  patternProperties: "pattern-map",
  additionalProperties: "schema",
  unevaluatedProperties: "schema",
  propertyNames: "schema",
  dependentSchemas: "schema-map",
  dependentRequired: "string-list-map",
  required: "string-list",
  minProperties: "count",
  maxProperties: "count",
  items: "schema",
  prefixItems: "schemas",
  unevaluatedItems: "schema",
  contains: "schema",
  minContains: "count",
  maxContains: "count",
  minItems: "count",
  maxItems: "count",
  uniqueItems: "boolean",
  pattern: "pattern",
  minLength: "count",
  maxLength: "count",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "number",
}
/** keywords whose subschemas look at the same value, not at a part of it */
export const IN_PLACE = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"])
export const REFUSED: Readonly<Record<string, string>> = {
  $async: "asynchronous schemas are not supported",
  $dynamicRef: "dynamic references are not supported; use `$ref`",
  $dynamicAnchor: "dynamic references are not supported; use `$ref` and `$defs`",
  $recursiveRef: "recursive references of 2019-09 are not supported; use `$ref`",
  $recursiveAnchor: "recursive references of 2019-09 are not supported; use `$ref`",
  $anchor: "anchors are not supported; use `$ref: '#/$defs/name'`",
  $data: "`$data` references are not supported",
  dependencies: "`dependencies` was split in 2019-09; use `dependentRequired` or `dependentSchemas`",
}
export const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"]
export const DIALECTS = /^https?:\/\/json-schema\.org\/(?:draft\/2020-12|draft\/2019-09|draft-07)\/schema#?$/

/** Schemas that the AIP texts refer to by address: they accept any value and are never fetched (C-38). */
export const STUB =
  /^https?:\/\/[a-z0-9.-]+\/(?:docs|schemas)\/aip-(?:16|27)\/(?:draft\/)?(?:IO|REF)\.schema\.json(?:#.*)?$/
