/**
 * The store of one host: in its data folder, or on the PostgreSQL that the operator names.
 *
 * Guarantees: opened at first need, once; one that could not be opened is tried again. PostgreSQL's client is loaded only
 * where it is configured. What the server is told as this host's own name is made once and lies in the data folder, so
 * that hosts on one server each tend what lies on their own disk. The URL's file is nobody else's and closed to others.
 * Assumes: a data folder that is copied is not used beside its copy.
 */
import { randomUUID } from "node:crypto"
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs"
import { hostIdFile, storeFile } from "../../data-folder/paths.ts"
import type { OperatorConfig } from "../config/types.ts"
import { hostLimits } from "../limits.ts"
import { type Store, StoreUnavailable } from "../store/store.ts"

type StoreConfig = NonNullable<OperatorConfig["store"]>

/** Of several processes that make it at once, one does. */
const hostId = (data: string): string => {
  const file = hostIdFile(data)
  if (!existsSync(file)) {
    const own = `${file}.${randomUUID()}`
    try {
      const fd = openSync(own, "wx", 0o600)
      try {
        writeSync(fd, `${randomUUID()}\n`)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      linkSync(own, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    } finally {
      rmSync(own, { force: true })
    }
  }
  const id = readFileSync(file, "utf8").trim()
  if (/^[0-9a-f-]{36}$/.test(id)) return id
  throw new StoreUnavailable(
    "damaged",
    `${file} does not hold this host's id`,
    "put back what it held: the server knows it as the owner of this host's rows",
  )
}

const unusable = (file: string, what: string, fix: string): StoreUnavailable =>
  new StoreUnavailable("trouble", `the store's ${file} cannot be used: ${what}`, fix)

const MODE_FIX = "give it to this user, for this user alone (chown, chmod 600)"

const readClosed = (file: string): string => {
  let fd: number
  try {
    fd = openSync(file, "r")
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException
    throw unusable(
      file,
      `it cannot be read (${code})`,
      "write the server's URL into it: postgres://user:password@host/db",
    )
  }
  try {
    const { uid, mode } = fstatSync(fd)
    if (!fstatSync(fd).isFile()) throw unusable(file, "it is no plain file", "name a plain file")
    if (uid !== process.getuid?.() && uid !== 0) throw unusable(file, "it belongs to another user", MODE_FIX)
    if ((mode & 0o027) !== 0) throw unusable(file, "it is open to others", MODE_FIX)
    const bytes = Buffer.alloc(hostLimits.postgresUrlBytes.value + 1)
    const length = readSync(fd, bytes, 0, bytes.length, 0)
    if (length > hostLimits.postgresUrlBytes.value) throw unusable(file, "it is too long", "write one URL into it")
    return bytes.subarray(0, length).toString("utf8")
  } finally {
    closeSync(fd)
  }
}

const readAuthority = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException
    throw unusable(file, `it cannot be read (${code})`, "write the authority's certificate into it, as PEM")
  }
}

const onPostgres = async (data: string, { urlFile, verify, caFile, connections }: StoreConfig): Promise<Store> => {
  const [{ postgresSettings }, { openPostgresStore }] = await Promise.all([
    import("../store/postgres/settings.ts"),
    import("../store/postgres/store.ts"),
  ])
  const ca = caFile === undefined ? {} : { ca: readAuthority(caFile) }
  const read = postgresSettings(readClosed(urlFile), { verify, ...ca })
  if (!read.ok) throw unusable(urlFile, read.message, "write one URL into it: postgres://user:password@host:5432/db")
  return openPostgresStore(read.settings, {
    owner: hostId(data),
    ...(connections === undefined ? {} : { connections }),
  })
}

interface OpenedStore extends AsyncDisposable {
  readonly open: () => Promise<Store>
  /** may anything be remembered; a host that never needed one makes none to look */
  readonly isUsed: () => boolean
}

export const storeFor = (data: string, config: OperatorConfig): OpenedStore => {
  let opened: Promise<Store> | undefined
  return {
    open() {
      if (opened !== undefined) return opened
      const opening =
        config.store === undefined
          ? import("../store/sqlite.ts").then(({ openSqliteStore }) => openSqliteStore(storeFile(data)))
          : onPostgres(data, config.store)
      opened = opening
      opening.catch(() => (opened = undefined))
      return opening
    },
    isUsed: () => config.store !== undefined || existsSync(storeFile(data)),
    async [Symbol.asyncDispose]() {
      const store = await opened?.catch(() => undefined)
      await store?.[Symbol.asyncDispose]()
    },
  }
}
