/** Fills the disk that the data folder is on, then appends receipts until that fails too. Says how many went through. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openAuditLog } from "../../src/host/receipts/log.ts"
import { verifyChain } from "../../src/host/receipts/verify.ts"

const disk = process.argv[2]
if (disk === undefined) throw new Error("usage: host-full-disk DISK")
const data = join(disk, "data")
mkdirSync(data, { mode: 0o700 })
await using log = openAuditLog(data)
const append = (n: number) =>
  log.append({
    actor: { id: "a" },
    action: "tool.invoked",
    subject: { kind: "tool" },
    metadata: { n, pad: "x".repeat(20_000) },
  })
await append(0)
try {
  writeFileSync(join(disk, "fill"), Buffer.alloc(16 << 20))
} catch {
  // That the disk is full is the point.
}
let written = 0
let failed = false
for (; written < 1000 && !failed; written += failed ? 0 : 1) {
  failed = await append(written + 1).then(
    () => false,
    () => true,
  )
}
process.stdout.write(JSON.stringify({ written, failed, verdict: await verifyChain(data) }))
