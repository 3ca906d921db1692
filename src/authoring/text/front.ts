/**
 * A manifest's text from its front matter as data, with comments beside lines.
 *
 * Guarantees: what is read back is the value that was given, whatever is in its texts: they are quoted where YAML would
 * take them for more. A text that no manifest may hold (control characters, such as steer a terminal) is refused by
 * `isWritable`, never mended. Comments are one line each, of printable characters. Pure.
 */
import { Document, isCollection, isMap, isNode, isScalar, type Node, Pair, Scalar } from "yaml"
import type { JsonObject } from "../../manifest/base-types.ts"

/** By the path of keys and positions. */
type Comments = ReadonlyMap<string, string>
export const commentKey = (path: readonly (string | number)[]): string => JSON.stringify(path)

/** Controls, and what changes the direction of text or hides in it. */
const STEERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u

/** One line that a person sees as it is. */
export const isWritable = (text: string): boolean => !STEERS.test(text)

const commentText = (text: string): string => ` ${text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "?")}`

/** Lists of short texts and small mappings stand in one line, as people write them. */
const FLOW_WIDTH = 60

const isShort = (node: Node): boolean =>
  isCollection(node) &&
  !isMap(node) &&
  node.items.every((item) => isScalar(item)) &&
  JSON.stringify(node.toJSON()).length <= FLOW_WIDTH

function dress(node: unknown, path: readonly (string | number)[], comments: Comments): boolean {
  if (!isNode(node)) return false
  const own = comments.get(commentKey(path))
  if (own !== undefined && !isCollection(node)) node.comment = commentText(own)
  if (!isCollection(node)) return own !== undefined
  let said = false
  for (const [at, item] of node.items.entries()) {
    if (item instanceof Pair) {
      const key = String(isScalar(item.key) ? item.key.value : item.key)
      const inside = [...path, key]
      said = dress(item.value, inside, comments) || said
      const about = comments.get(commentKey(inside))
      if (about !== undefined && isCollection(item.value)) {
        const named = item.key instanceof Scalar ? item.key : new Scalar(key)
        named.commentBefore = commentText(about)
        item.key = named
        said = true
      }
    } else said = dress(item, [...path, at], comments) || said
  }
  if (!said && isShort(node)) node.flow = true
  return said
}

export const manifestText = (front: JsonObject, body: string, comments: Comments = new Map()): string => {
  const document = new Document(front, { version: "1.2", schema: "core", aliasDuplicateObjects: false })
  dress(document.contents, [], comments)
  return `---\n${document.toString({ lineWidth: 0, flowCollectionPadding: false })}---\n\n${body.trim()}\n`
}
