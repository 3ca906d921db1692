/**
 * Requests over one connection that is kept, from inside a sandbox by the proxy, beside the same program outside that asks
 * the same host directly: plain HTTP and TLS, in turns. Options: `--requests=N`, `--turns=N`.
 */
import { execFile, fork, spawnSync } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { createHost } from "../src/host/index.ts"
import { bar, median } from "./measure.ts"

const option = (name: string, otherwise: number): number =>
  Number(process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? otherwise)
const times = option("requests", 2_000)
const turns = option("turns", 5)
const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-bench-")))
const manifests = fileURLToPath(new URL("./manifests", import.meta.url))
const program = fileURLToPath(new URL("./egress/requests.py", import.meta.url))
const [key, certificate] = [join(folder, "key"), join(folder, "certificate")]
const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
const made = spawnSync("openssl", [...words, "-subj", "/CN=secure.bench", "-keyout", key, "-out", certificate])
if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`)
const web = fork(fileURLToPath(new URL("./egress/web.ts", import.meta.url)), [key, certificate])
try {
  const [ports] = (await once(web, "message")) as [Readonly<Record<"http" | "https", number>>]
  const workspace = join(folder, "workspace")
  mkdirSync(workspace)
  copyFileSync(program, join(workspace, "requests.py"))
  const config = join(folder, "caisson.yaml")
  const services = `plain.bench: "127.0.0.1:${ports.http}", secure.bench: "127.0.0.1:${ports.https}"`
  writeFileSync(config, `egress: { services: { ${services} } }\n`, { mode: 0o600 })
  await using host = await createHost({ data: join(folder, "data"), manifests: [manifests], config })
  const sealed = async (scheme: string): Promise<number> => {
    const result = await host.call({ tool: "bench.requests", input: { scheme, times }, workspace }, { approved: true })
    if (!result.ok) throw new Error(`${result.error.code} ${result.error.message}`)
    return (result.value as { perSecond: number }).perSecond
  }
  const direct = async (scheme: "http" | "https"): Promise<number> => {
    const asked = [program, scheme, String(times), `127.0.0.1:${ports[scheme]}`]
    const { stdout } = await promisify(execFile)("python3", asked)
    return (JSON.parse(stdout) as { perSecond: number }).perSecond
  }
  console.log(`\n${times} requests over one connection (a second)`)
  for (const scheme of ["http", "https"] as const) {
    const [inside, outside]: [number[], number[]] = [[], []]
    for (let turn = 0; turn < turns; turn += 1) {
      outside.push(await direct(scheme))
      inside.push(await sealed(scheme))
    }
    console.log(`  ${scheme.padEnd(6)} direct ${median(outside).toFixed(0)}, sealed ${median(inside).toFixed(0)}`)
    const what = scheme === "http" ? "plain HTTP" : "TLS"
    bar(`requests on a kept connection, ${what}, by direct ones`, median(inside) / median(outside), 0.6, {
      atLeast: true,
    })
  }
} finally {
  web.disconnect()
  rmSync(folder, { recursive: true, force: true })
}
