/** A writer in a process of its own: appends entries until told how many, or until it is killed. */
import { openAuditLog } from "../../../src/host/receipts/log.ts"

const [data, count, tag, padding, segmentBytes] = process.argv.slice(2)
if (data === undefined || tag === undefined)
  throw new Error("usage: append-many DATA COUNT TAG [PADDING] [SEGMENT_BYTES]")
await using log = openAuditLog(data, segmentBytes === undefined ? {} : { segmentBytes: Number(segmentBytes) })
let n = 0
/** A few at once, each its entries one after the other. */
const append = async (): Promise<void> => {
  while (n < Number(count)) {
    const own = n
    n += 1
    await log.append({
      actor: { id: tag },
      action: "tool.invoked",
      subject: { kind: "tool", ref: "t@1" },
      metadata: { call: `${tag}-${own}`, padding: "x".repeat(Number(padding ?? 0)) },
    })
    process.stdout.write(`${own}\n`)
  }
}
await Promise.all([append(), append(), append(), append(), append()])
