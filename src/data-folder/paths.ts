/**
 * Every path of the data folder, named once: what lies there, and whose it is. Pure; nothing is made or looked at here.
 *
 * A room of its own, because the sandbox and the host both keep things there and neither may know the other's.
 */
import { join } from "node:path"

type InData = (data: string) => string
const at =
  (...names: readonly string[]): InData =>
  (data) =>
    join(data, ...names)

export const CONFIG_NAME = "caisson.yaml"
/** the operator's word */
export const configFile = at(CONFIG_NAME)

/** the evidence: what an auditor takes along */
export const auditFolder = at("audit")
export const auditLogFile = at("audit", "audit-log.jsonl")
/** what was moved out of it when it was full, each part with a head */
export const auditSegmentsFolder = at("audit", "segments")
/** schemas that receipts name, each under its digest */
export const auditSchemasFolder = at("audit", "schemas")
/** the last entry, signed */
export const auditHeadFile = at("audit", "head-pointer.json")
export const publishedKeysFile = at("audit", ".well-known", "governance-keys.json")
/** held while an entry is appended */
export const auditLockFile = at("audit", ".lock")
/** disk space kept for the entry that tells of a full disk */
export const auditReserveFile = at("audit", ".reserve")

/** where in the log what lies: made from it, and made anew wherever it is missing */
export const receiptIndexFile = at("receipts-index.db")

/** of a daemon that was begun where nobody sits: until somebody takes it */
export const firstTokenFile = at("first-token")

/** what stays here when the evidence is taken along */
const keysFolder = at("keys")
export const auditKeyFile = at("keys", "audit-ed25519.pem")
/** a second copy of the signed head, which tells of evidence that is gone */
export const auditAnchorFile = at("keys", "audit-head.json")

/** what the vault's own key is wrapped under, where the operator keeps none elsewhere */
export const vaultKeyFile = at("keys", "vault.key")
/** the one that a rotation puts in its place */
export const nextVaultKeyFile = at("keys", "vault.key.next")
/** secrets, encrypted */
export const vaultFile = at("secrets", "vault.json")
/** held while they are written */
export const vaultLockFile = at("secrets", ".lock")

/** drivers' own state: a folder an owner, or a file where it is kept encrypted */
export const homesFolder = at("homes")
/** which key of the vault homes are encrypted under from now on */
export const homeKeyNameFile = at("homes", "key")
/** held by one who changes that, and together by all who write homes under it */
export const homeKeyLockFile = at("homes", "key.lock")
/** held while a login, a refresh or a logout is under way: one for each driver, workspace and user */
export const loginLocksFolder = at("logins", "locks")
/** held while a sandbox is there: one for each place that a policy allows */
export const limitLocksFolder = at("limits")
/** a marker for each call under way: what a killed host left gets its receipt from it */
export const callsFolder = at("calls")
/** calls that wait for an answer, a folder each: the layer, what it was laid over, what the call answered */
export const heldFolder = at("held")
/** what is remembered of them, and whatever else outlives a process */
export const storeFile = at("store.db")
/** written and removed again, to see that things can be */
export const healthFile = at(".health")
/** what a store that other hosts share knows this one as */
export const hostIdFile = at("host-id")
/** ids of workspaces, by what their folders are */
export const workspacesFolder = at("workspaces")
/** the empty workspace of version checks */
export const scratchFolder = at("tmp")

/** what modules of Amplifier's mounted, by all that they were mounted from */
export const mountedFolder = at("mounted")
/** packages as they were installed and frozen, a read-only folder each, by the digest of its content */
export const installedLayersFolder = at("installed", "layers")
/** what each of those holds, and what its files were when it was checked last */
export const installedListsFolder = at("installed", "lists")
/** which of them serves which request */
export const installedSpecsFolder = at("installed", "specs")
/** downloads that broke off, a folder each, for the next attempt to go on with */
export const installDownloadsFolder = at("installed", "downloads")
/** installs under way */
export const installBuildsFolder = at("installed", "builds")
/** held while one is: one for each request */
export const installLocksFolder = at("installed", "locks")

/** what health checks found, a file a driver */
export const healthFolder = at("health")
/** what programs said of their versions */
export const versionsFolder = at("versions")
/** what manifests said when they were read last */
export const knownManifestsFolder = at("manifests")
/** what drivers narrowed when they were registered last */
export const narrowingsFile = at("narrowings.json")
/** how far tools, drivers and actions reached when they were first registered */
export const registeredFile = at("registered.db")
/** which manifests were found to reach no further since */
export const takenFile = at("taken-manifests")
/** digests of programs, by what their files are */
export const programDigestsFile = at("program-digests.json")

/** where the daemon listens, for this user's own programs */
export const daemonSocket = at("daemon.sock")
/** held by the daemon while it runs */
export const daemonLockFile = at("daemon.lock")

/** the sandbox's: layers of calls, journals of commits */
export const layersFolder = at("layers")
/** the sandbox's: where an ordinary user's private mounts go */
export const mountsFolder = at("mounts")
/** the sandbox's: places of containers */
export const dockerFolder = at("docker")

/** Made when the folder is opened, closed to others; the rest is made by whoever needs it. */
export const ALWAYS_THERE: readonly InData[] = [auditFolder, keysFolder, homesFolder, callsFolder, scratchFolder]
