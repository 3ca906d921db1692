/**
 * Waits with a module imported for the one call that it is then used for. Part of `run-node.mjs`; has no dependencies.
 *
 * At a descriptor, the door, it says `W`, imports, and hears what the call brings: its environment and folder, in a frame.
 * Guarantees: an import that failed, or that looked at anything which only a call has, is of no use to one: a variable that
 * came with it, a file of the workspace, the home or the scratch, another host, a child process, code that is not
 * JavaScript. Then it says `U` and why, and begins anew as the same command in the same place, as if it was started then.
 * So it does where a file that the import used is another one, or holds something else, when the call comes.
 * Does not: see what a module that hides it looks at. It is in its call's own sandbox already, where there is nothing yet.
 */
import child from "node:child_process"
import dgram from "node:dgram"
import dns from "node:dns"
import fs from "node:fs"
import { registerHooks, syncBuiltinESMExports } from "node:module"
import net from "node:net"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const { statSync } = fs
const factsOf = (path) => {
  try {
    const facts = statSync(path, { bigint: true, throwIfNoEntry: false })
    return facts && [facts.dev, facts.ino, facts.mode, facts.size, facts.mtimeNs, facts.ctimeNs].join(" ")
  } catch (error) {
    return error.code
  }
}

/** What was asked for while there was no call. */
class Looked {
  /** files that were used, each as it was before that */
  files = new Map()
  uses(path) {
    if (!this.over && !this.files.has(path)) this.files.set(path, factsOf(path))
  }
  /** A module's file, and those beside and above it that say how it is loaded. */
  loads(url) {
    if (!url.startsWith("file:")) return
    const path = fileURLToPath(url)
    this.uses(path)
    for (let at = dirname(path); at !== dirname(at); at = dirname(at)) this.uses(join(at, "package.json"))
  }
  isStale() {
    return [...this.files].some(([path, facts]) => factsOf(path) !== facts)
  }
  /** names of variables; `*`: all of them */
  variables = new Set()
  /** what no call may be without */
  why = undefined
  over = false
  at(what) {
    if (!this.over) this.why ??= what
  }
}

const pathOf = (path) => {
  const text =
    path instanceof URL ? decodeURIComponent(path.pathname) : path instanceof Uint8Array ? String(path) : path
  if (typeof text !== "string") return undefined
  return text.startsWith("/") ? join(text) : join("/workspace", text)
}
const OWN_FOLDERS = ["/workspace", "/tmp", "/dev/shm", "/run/caisson", process.env["HOME"] ?? "/home/tool"]
/** A path, or what stands for one, in a folder that is a call's own. */
const isCalls = (path) => {
  const at = pathOf(path)
  return at !== undefined && OWN_FOLDERS.some((own) => at === own || at.startsWith(`${own}/`))
}

/** Of an object's functions, those that `sees` has a word for are told of; answers how to put all back. */
const watchEach = (object, looked, sees) => {
  const before = {}
  for (const [name, own] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
    const made = own.value
    if (typeof made !== "function" || own.configurable !== true || /^[A-Z]/.test(name)) continue
    const told = function (...args) {
      const seen = looked.over ? undefined : sees(name, args)
      if (seen !== undefined) looked.at(seen)
      return Reflect.apply(made, this, args)
    }
    for (const key of Reflect.ownKeys(made))
      if (key !== "prototype") Object.defineProperty(told, key, Object.getOwnPropertyDescriptor(made, key))
    before[name] = own
    Object.defineProperty(object, name, { ...own, value: told })
  }
  return () => Object.defineProperties(object, before)
}

const named = (names, what) => (name) => (names.test(name) ? `${what} (${name})` : undefined)

const watchModules = (looked) => {
  const file = (name, [path]) => {
    if (isCalls(path)) return `${name} of ${String(path)}`
    const at = pathOf(path)
    if (at !== undefined) looked.uses(at)
    return undefined
  }
  const loading = registerHooks({
    resolve(asked, context, next) {
      const found = next(asked, context)
      looked.loads(found.url)
      return found
    },
  })
  const undo = [
    watchEach(fs, looked, file),
    watchEach(fs.promises, looked, file),
    watchEach(child, looked, named(/./, "a child process")),
    watchEach(dns, looked, named(/^(lookup|resolve|reverse)/, "the address of a name")),
    watchEach(dns.promises, looked, named(/^(lookup|resolve|reverse)/, "the address of a name")),
    watchEach(net.Socket.prototype, looked, named(/^connect$/, "a connection")),
    watchEach(net.Server.prototype, looked, named(/^listen$/, "a listener")),
    watchEach(dgram.Socket.prototype, looked, named(/^(bind|connect|send)$/, "a datagram")),
  ]
  const { dlopen } = process
  process.dlopen = (...args) => {
    looked.at("code that is not JavaScript")
    return Reflect.apply(dlopen, process, args)
  }
  return () => {
    loading.deregister()
    for (const each of undo) each()
    process.dlopen = dlopen
  }
}

const watchVariables = (looked) => {
  const { env } = process
  const saw = (name) => {
    if (!looked.over && typeof name === "string") looked.variables.add(name)
  }
  process.env = new Proxy(env, {
    get(_, name) {
      saw(name)
      return env[name]
    },
    has(_, name) {
      saw(name)
      return name in env
    },
    getOwnPropertyDescriptor(_, name) {
      saw(name)
      return Reflect.getOwnPropertyDescriptor(env, name)
    },
    ownKeys() {
      saw("*")
      return Reflect.ownKeys(env)
    },
    set(_, name, value) {
      looked.at(`a variable that it sets (${String(name)})`)
      return Reflect.set(env, name, value)
    },
    deleteProperty(_, name) {
      looked.at(`a variable that it removes (${String(name)})`)
      return Reflect.deleteProperty(env, name)
    },
  })
  return () => {
    process.env = env
  }
}

const watch = () => {
  const looked = new Looked()
  const undo = [watchModules(looked), watchVariables(looked)]
  syncBuiltinESMExports()
  const failed = (error) => looked.at(`an error (${error?.message ?? error})`)
  process.on("uncaughtException", failed).on("unhandledRejection", failed)
  return {
    looked,
    stop() {
      looked.over = true
      for (const each of undo) each()
      syncBuiltinESMExports()
      process.off("uncaughtException", failed).off("unhandledRejection", failed)
    },
  }
}

/** What the call brings, once it is there. */
const callAt = (door) =>
  new Promise((resolve) => {
    let held = Buffer.alloc(0)
    // Nobody has use for it any more.
    const gone = () => process.exit(0)
    door.on("error", gone).on("close", gone)
    door.on("data", (bytes) => {
      held = Buffer.concat([held, bytes])
      if (held.length < 4 || held.length < 4 + held.readUInt32BE(0)) return
      door
        .off("error", gone)
        .off("close", gone)
        .on("error", () => undefined)
      resolve(JSON.parse(held.subarray(4, 4 + held.readUInt32BE(0)).toString("utf8")))
    })
  })

/** Read when the interpreter or its libraries start: a call that brings another value needs a process of its own. */
const AT_START = /^(NODE_|LD_|SSL_CERT|OPENSSL_|MALLOC_|UV_|LC_|LANG$|TZ$)/
const changedBy = (env) =>
  [...new Set([...Object.keys(env), ...Object.keys(process.env)])].filter((name) => env[name] !== process.env[name])

const MOST_WHY = 200
/** The private pipes once more, as `wait.pl` left them. */
const SPARE = [60, 61]
/** `load` imports the module, which is answered in its call: with its environment, in its folder. */
export const beginBeforeCall = async (load, number) => {
  const { execve } = process
  // A Node that could not begin anew is started with its call.
  if (typeof execve !== "function") process.exit(1)
  const door = new net.Socket({ fd: number, readable: true, writable: true })
  const { looked, stop } = watch()
  const called = callAt(door)
  door.write("W\n")
  const module = await load().catch((error) => looked.at(`an error (${error?.message ?? error})`))
  if (looked.why !== undefined) door.write(`U ${looked.why.slice(0, MOST_WHY).replaceAll("\n", " ")}\n`)
  const { env, folder } = await called
  const stale = looked.isStale()
  stop()
  door.destroy()
  process.chdir(folder)
  const changed = changedBy(env)
  const isSeen = (name) => AT_START.test(name) || looked.variables.has("*") || looked.variables.has(name)
  if (looked.why !== undefined || changed.some(isSeen) || stale) {
    process.removeAllListeners("warning")
    Reflect.apply(execve, process, [process.execPath, [process.argv0, process.argv[1], SPARE.join(",")], env])
  }
  for (const fd of SPARE) fs.closeSync(fd)
  for (const name of changed)
    if (env[name] === undefined) delete process.env[name]
    else process.env[name] = env[name]
  return module
}
