/**
 * What a driver's other side knows a call by.
 *
 * Guarantees: pure. The same for the same operation and driver, in every attempt and after a restart; another for another
 * driver, so that two services cannot tell by it that they served one call; nothing of the caller's own key can be read
 * from it. It has the form of a UUID of version 4, which services ask for (AIP-31).
 */
import { createHash } from "node:crypto"

export const operationKey = (operation: string, driver: string): string => {
  const digest = createHash("sha256")
    .update(JSON.stringify([operation, driver]))
    .digest("hex")
  const variant = "89ab"[Number.parseInt(digest.slice(16, 17), 16) & 3] ?? "8"
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `4${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join("-")
}
