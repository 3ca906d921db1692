/**
 * Runs one function of a module, inside a sandbox, for the host that started this process. Has no dependencies.
 *
 * The talk is on descriptors 3 (read) and 4 (write), in frames: four bytes of length, big end first, then that much JSON.
 * What the host asks: `call`, `resolve` or `inspect`, once; then perhaps `abort`. What is answered: any number of `event` and
 * `call`, each `call` followed in time by the host's `answer` to it, then one `result` or `error`, each with the host's nonce.
 * Standard output is the module's own.
 *
 * Started before there is a call it has two words more: what to import, and the number of a descriptor (`wait-node.mjs`).
 *
 * Guarantees: frames that it takes or gives are bounded; an answer is given once, and then the process ends.
 * Does not: keep the module from writing to descriptor 4 itself. It is the same process, and what it says there is as
 * much its word as what it returns; the nonce only tells frames from bytes that got there by accident.
 */
import { readSync, statSync, writeSync } from "node:fs"
import { createRequire, registerHooks } from "node:module"
import { Socket } from "node:net"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

let READ = 3
let WRITE = 4
const MOST_IN = 64 * 1024 * 1024
const MOST_NAMES = 16
const MOST_MESSAGE = 4096
const { parse, stringify } = JSON
const exit = process.exit.bind(process)

const pause = new Int32Array(new SharedArrayBuffer(4))
const writeAll = (bytes) => {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(WRITE, bytes, at)
    } catch (error) {
      if (error.code !== "EAGAIN") throw error
      Atomics.wait(pause, 0, 0, 1)
    }
  }
}

const readExactly = (length) => {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; ) {
    const read = readSync(READ, bytes, at, length - at, null)
    if (read === 0) exit(1)
    at += read
  }
  return bytes
}
const readFrame = () => {
  const length = readExactly(4).readUInt32BE(0)
  if (length > MOST_IN) exit(1)
  return parse(readExactly(length).toString("utf8"))
}

const formless = (what) => new TypeError(`${what} has no form in JSON`)
/**
 * Bytes as base64, sets as lists, maps with names for keys as objects, and numbers that are too large for JSON's readers
 * as text. What would be lost without a word fails the call; methods of an object are no data of it.
 */
function plain(key, value) {
  const own = this[key]
  if (own instanceof Uint8Array) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString("base64")
  if (own instanceof Set) return [...own]
  if (own instanceof Map) {
    if ([...own.keys()].some((name) => typeof name !== "string")) throw formless("a Map whose keys are not all texts")
    return Object.fromEntries(own)
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw formless(`the number ${value}`)
  const isPart = Array.isArray(this) || this?.nonce === nonce
  if (isPart && (typeof value === "function" || typeof value === "symbol")) throw formless(`a ${typeof value}`)
  if (typeof value !== "bigint") return value
  return BigInt.asIntN(53, value) === value ? Number(value) : String(value)
}

let request = {}
let nonce = ""
let most = 0
let answered = false
const encode = (body) => Buffer.from(stringify({ nonce, ...body }, plain), "utf8")
const send = (bytes) => {
  const frame = Buffer.allocUnsafe(4 + bytes.length)
  frame.writeUInt32BE(bytes.length, 0)
  bytes.copy(frame, 4)
  writeAll(frame)
}

const textOf = (value, most) => {
  try {
    return String(value).slice(0, most)
  } catch {
    return ""
  }
}
/** The error's own name and those of the classes above it. */
const namesOf = (error) => {
  const names = []
  const add = (name) => {
    if (typeof name === "string" && name !== "" && !names.includes(name) && names.length < MOST_NAMES)
      names.push(name.slice(0, 200))
  }
  add(error?.name)
  for (let at = error; at !== null && at !== undefined && typeof at === "object"; at = Object.getPrototypeOf(at))
    if (at !== Object.prototype) add(at.constructor?.name)
  if (names.length === 0) add(typeof error)
  return names
}
/** An answer's status by HTTP; other numbers that errors carry under the name are none. */
const statusOf = (error) =>
  [error?.status, error?.statusCode, error?.response?.status].find(
    (each) => Number.isInteger(each) && each >= 100 && each <= 599,
  )
const describe = (error) => {
  try {
    const status = statusOf(error)
    const code = typeof error?.code === "string" ? error.code.slice(0, 200) : undefined
    return {
      names: namesOf(error),
      message: textOf(error?.message ?? error, MOST_MESSAGE),
      ...(status === undefined ? {} : { status }),
      ...(code === undefined ? {} : { code }),
    }
  } catch {
    return { names: ["Error"], message: "an error that cannot be read" }
  }
}
const finish = (body) => {
  if (answered) return
  answered = true
  try {
    let bytes
    try {
      bytes = encode(body)
    } catch (error) {
      bytes = encode({ type: "error", where: "result", ...describe(error) })
    }
    if (bytes.length > most)
      bytes = encode({
        type: "error",
        where: "result",
        names: ["ResultTooLarge"],
        message: `the result is larger than ${most} bytes`,
      })
    send(bytes)
  } finally {
    exit(0)
  }
}
const fail = (where, error) => finish({ type: "error", where, ...describe(error) })
const event = (value) => {
  if (answered) return
  const bytes = encode({ type: "event", value: value === undefined ? null : value })
  if (bytes.length <= most) send(bytes)
  else fail("result", new RangeError(`a part of the result is larger than ${most} bytes`))
}

/** What another tool, asked by `call`, ended with where it did not do it; `code` is the host's word for why. */
class ToolError extends Error {
  name = "ToolError"
  constructor({ code, class: kind, message, retryable }) {
    super(message)
    Object.assign(this, { code, class: kind, retryable })
  }
}
let listener
let asked = 0
const waiting = new Map()
/** Another tool of the same host, one that this tool's contract requires, with the rights of whoever made this call. */
const callTool = (tool, input = {}) =>
  new Promise((resolve, reject) => {
    if (answered) throw new TypeError("this call has its answer already")
    asked += 1
    const bytes = encode({ type: "call", id: asked, tool, input })
    if (bytes.length > most) throw new RangeError(`what ${tool} is asked is larger than ${most} bytes`)
    waiting.set(asked, { resolve, reject })
    listener?.ref()
    send(bytes)
  })
const hearAnswer = ({ id, ok, value, error }) => {
  const one = waiting.get(id)
  if (one === undefined) return
  waiting.delete(id)
  if (waiting.size === 0) listener?.unref()
  if (ok) one.resolve(value)
  else one.reject(new ToolError(error))
}

const aborting = new AbortController()
const listen = () => {
  try {
    let held = Buffer.alloc(0)
    const socket = new Socket({ fd: READ, readable: true, writable: false })
    socket.on("error", () => undefined)
    socket.on("data", (bytes) => {
      held = Buffer.concat([held, bytes])
      while (held.length >= 4 && held.length >= 4 + held.readUInt32BE(0)) {
        const length = held.readUInt32BE(0)
        const said = parse(held.subarray(4, 4 + length).toString("utf8"))
        held = held.subarray(4 + length)
        if (said.do === "abort") aborting.abort()
        else if (said.do === "answer") hearAnswer(said)
      }
    })
    socket.unref()
    listener = socket
  } catch {
    // Without it nobody can ask for an early end; the host ends the process all the same.
  }
}

const INDEX = ["index.js", "index.mjs", "index.cjs", "index.ts", "index.mts", "index.cts"]
const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true
/** A folder stands for what its package.json, or an index file in it, names. */
const fileOf = (path) => {
  if (isFile(path)) return path
  const index = INDEX.map((name) => join(path, name)).find(isFile)
  try {
    return createRequire(join(path, "_.js")).resolve(path)
  } catch (error) {
    if (index === undefined) throw error
    return index
  }
}
/** As a module in `from` would import it. */
const importFrom = async (specifier, from) => {
  const wanted = `caisson-module:${specifier}`
  const parentURL = pathToFileURL(join(from, "_.mjs")).href
  const hooks = registerHooks({
    resolve: (asked, context, next) =>
      asked === wanted ? next(specifier, { ...context, parentURL }) : next(asked, context),
  })
  try {
    return await import(wanted)
  } finally {
    hooks.deregister()
  }
}
/** Packages of another folder, for what the module's own do not have. */
const alsoFrom = (folder) => {
  const parentURL = pathToFileURL(join(folder, "_.mjs")).href
  registerHooks({
    resolve: (asked, context, next) => {
      try {
        return next(asked, context)
      } catch (error) {
        if (error?.code !== "ERR_MODULE_NOT_FOUND" || /^[./]|^[a-z]+:/.test(asked)) throw error
        return next(asked, { ...context, parentURL })
      }
    },
  })
}
/** What was imported before there was a call: its spec as text, and the module. */
let imported
const load = (spec) => (imported?.spec === stringify(spec) ? Promise.resolve(imported.module) : loadNow(spec))
const loadNow = async ({ path, name, entry, from, style, also, aliases = {} }) => {
  if (also !== undefined) alsoFrom(also)
  if (Object.keys(aliases).length > 0)
    registerHooks({
      resolve: (asked, context, next) =>
        Object.hasOwn(aliases, asked) ? { url: aliases[asked], shortCircuit: true } : next(asked, context),
    })
  if (path !== undefined) {
    const file = fileOf(path)
    return style === "cjs" && !/\.m[jt]s$/.test(file) ? createRequire(file)(file) : import(pathToFileURL(file).href)
  }
  const specifier = entry === undefined ? name : `${name}/${entry}`
  try {
    return await (style === "cjs" ? createRequire(join(from, "_.cjs"))(specifier) : importFrom(specifier, from))
  } catch (error) {
    // A file of the package that its `exports` do not name is still the one that the manifest names.
    if (entry === undefined || error?.code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error
    return import(pathToFileURL(fileOf(join(from, "node_modules", name, entry))).href)
  }
}

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function"
const isClass = (value) => typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value))
const mayConstruct = (value, name) =>
  isClass(value) || (typeof value === "function" && value.prototype !== undefined && /^[A-Z]/.test(name))
const follow = (value, names) => names.reduce((at, name) => (isObject(at) ? at[name] : undefined), value)
/** Has the class itself what is asked of it, and none of its instances? */
const isStatic = (value, rest) => typeof follow(value, rest) === "function" && !(rest[0] in (value.prototype ?? {}))

class Unresolvable extends Error {
  name = "Unresolvable"
}
const missing = (ref, count) => {
  throw new Unresolvable(`there is no \`${ref.slice(0, count).join(".")}\` in the module`)
}
/** `client`: makes an instance of a class on the way; absent: nothing is made, and what only an instance has is taken on trust. */
const resolve = (module, ref, client) => {
  const [first] = ref
  let owner
  let at = Object.hasOwn(module, first) || first in module ? module : (module.default ?? module)
  for (const [index, name] of ref.entries()) {
    if (!isObject(at)) missing(ref, index + 1)
    const next = name === "default" && index === 0 && !(name in at) ? at : at[name]
    if (next === undefined) missing(ref, index + 1)
    owner = at
    at = next
    const rest = ref.slice(index + 1)
    if (rest.length === 0 || !mayConstruct(at, name) || isStatic(at, rest)) continue
    if (client === undefined) return undefined
    at = client(at)
    client = (value) => value
  }
  // A tool that is defined as an object is called by its `execute`.
  if (isObject(at) && typeof at !== "function" && typeof at.execute === "function") {
    owner = at
    at = at.execute
  }
  if (typeof at !== "function") throw new Unresolvable(`\`${ref.join(".")}\` is no function`)
  return (args) => (isClass(at) ? Reflect.construct(at, args) : Reflect.apply(at, owner, args))
}

/** The host knows secrets by marks alone; what stands for them is in this process's environment. */
const unmarked = (value, marks) => {
  if (typeof value === "string")
    return marks.reduce((text, [mark, name]) => text.replaceAll(mark, () => process.env[name] ?? ""), value)
  if (!isObject(value)) return value
  if (Array.isArray(value)) return value.map((item) => unmarked(item, marks))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unmarked(item, marks)]))
}
/** What has no form in JSON is put into the arguments here. */
const putIn = (args, paths, what) => {
  for (const path of paths) {
    const last = path.at(-1)
    const holder = path.slice(0, -1).reduce((at, key) => at?.[key], args)
    if (isObject(holder)) holder[last] = what
  }
}
const iteratorOf = (value) => {
  if (!isObject(value)) return undefined
  const make = value[Symbol.asyncIterator] ?? value[Symbol.iterator]
  return typeof make === "function" ? make.call(value) : undefined
}
/** Each part is told at once; what the iterator returns at its end goes with the answer. */
const stream = async (iterator) => {
  const stop = () => {
    Promise.resolve(iterator.return?.()).catch(() => undefined)
  }
  aborting.signal.addEventListener("abort", stop, { once: true })
  for (;;) {
    const { done, value } = await iterator.next()
    if (done) return value
    event(await value)
  }
}

const call = async () => {
  const { ref, signals = [], calls = [], context, streaming } = request
  const marks = Object.entries(request.marks ?? {})
  const client = unmarked(request.client ?? {}, marks)
  const args = unmarked(request.args ?? [], marks)
  const module = await load(request.module).catch((error) => fail("load", error))
  if (answered) return
  let target
  try {
    target = resolve(module, ref, (Class) => Reflect.construct(Class, client.with === undefined ? [] : [client.with]))
  } catch (error) {
    fail(error instanceof Unresolvable ? "resolve" : "call", error)
    return
  }
  putIn(args, signals, aborting.signal)
  putIn(args, calls, callTool)
  if (streaming === "callback") args.push(event)
  if (context !== undefined) args.push({ ...context, signal: aborting.signal, call: callTool })
  const made = await target(args)
  const iterator = streaming === "async-iterator" ? iteratorOf(made) : undefined
  const value = iterator === undefined ? made : await stream(iterator)
  finish({ type: "result", value: value === undefined ? null : value, streamed: iterator !== undefined })
}

const inspect = (module) => {
  const at = follow(module, request.ref)
  if (!isObject(at)) return { type: typeof at }
  const keys = Object.entries(at).map(([key, value]) => [key, typeof value])
  return { type: typeof at, keys: Object.fromEntries(keys) }
}
const look = async () => {
  const module = await load(request.module).catch((error) => fail("load", error))
  if (answered) return
  if (request.do === "inspect") return finish({ type: "result", value: inspect(module) })
  const faults = request.refs.map((ref) => {
    try {
      resolve(module, ref, undefined)
      return null
    } catch (error) {
      return describe(error).message
    }
  })
  finish({ type: "result", value: faults })
}

const [, , early, door] = process.argv
process.argv.length = 2
// Begun anew: the same pipes, by the numbers that outlive an exec.
if (early !== undefined && door === undefined) [READ, WRITE] = early.split(",").map(Number)
if (door !== undefined) {
  const { beginBeforeCall } = await import("./wait-node.mjs")
  imported = { spec: early, module: await beginBeforeCall(() => loadNow(parse(early)), Number(door)) }
}
request = readFrame()
nonce = request.nonce
most = request.most
process.once("uncaughtException", (error) => fail("call", error))
listen()
if (request.do === "call") call().catch((error) => fail("call", error))
else look().catch((error) => fail("load", error))
