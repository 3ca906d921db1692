/**
 * What health checks found, kept between runs and shared by the hosts of a data folder.
 *
 * Guarantees: one small file a driver, written whole; what cannot be read, or says something else than a result, is
 * simply not known. Names are hex digests of the driver and its manifest: a changed manifest is checked anew.
 */
import { createHash } from "node:crypto"
import { mkdirSync } from "node:fs"
import { open, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { healthFolder } from "../../data-folder/paths.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { HealthStatus } from "../resolver/types.ts"
import { hostLimits } from "../limits.ts"

export interface HealthRecords {
  get(driver: RegisteredDriver): Promise<HealthStatus | undefined>
  set(driver: RegisteredDriver, status: HealthStatus): Promise<void>
}

const nameOf = ({ key, contract }: RegisteredDriver): string =>
  createHash("sha256")
    .update(JSON.stringify([key, contract.source.file, contract.source.digest]))
    .digest("hex")

const statusOf = (text: string): HealthStatus | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== "object" || value === null) return undefined
  const { ok, at, reason } = value as Record<string, unknown>
  if (typeof ok !== "boolean" || typeof at !== "number" || !Number.isFinite(at)) return undefined
  return { ok, at, ...(typeof reason === "string" ? { reason } : {}) }
}

const readStart = async (file: string): Promise<string> => {
  await using handle = await open(file)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(hostLimits.healthRecordBytes.value), 0)
  return buffer.toString("utf8", 0, bytesRead)
}

export const openHealthRecords = (data: string): HealthRecords => {
  const folder = healthFolder(data)
  return {
    async get(driver) {
      return statusOf(await readStart(join(folder, nameOf(driver))).catch(() => ""))
    },
    async set(driver, status) {
      const file = join(folder, nameOf(driver))
      const temporary = `${file}.${process.pid}.new`
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        await writeFile(temporary, JSON.stringify(status), { mode: 0o600 })
        await rename(temporary, file)
      } catch {
        // Not remembering a result costs one check, never a call.
      }
    },
  }
}
