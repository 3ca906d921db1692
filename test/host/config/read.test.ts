import { describe, expect, it } from "vitest"
import { readConfig } from "../../../src/host/config/read.ts"
import { defaultConfig } from "../../../src/host/config/types.ts"

const read = (source: string) => readConfig(source, "/etc/caisson.yaml", "/etc")
const faults = (source: string) => {
  const result = read(source)
  return result.ok ? [] : result.diagnostics.map(({ path, message, fix }) => ({ path, message, fix }))
}

describe("caisson.yaml", () => {
  it("is all defaults when it is empty", () => {
    expect(read("")).toEqual({ ok: true, config: { ...defaultConfig, file: "/etc/caisson.yaml" } })
  })

  it("takes a setting that is left empty as not written", () => {
    expect(read("limits:\negress:\n  allow:\nregion:\n")).toEqual(read("limits: {}\negress: {}\n"))
  })

  it("tells every fault of a file, each with its place and what to write", () => {
    expect(faults("bakend: docker\nlimits: { pids: many }\nmanifests: [~/x]\nzzz: 1")).toEqual([
      { path: "bakend", message: expect.stringContaining("there is no setting `bakend`"), fix: "write `backend`" },
      { path: "zzz", message: "there is no setting `zzz`", fix: expect.stringContaining("known here: manifests, ") },
      { path: "manifests[0]", message: expect.any(String), fix: expect.stringContaining("`~` is not expanded") },
      {
        path: "limits.pids",
        message: expect.stringContaining("`many`"),
        fix: "write a whole number from 1 to 1048576",
      },
    ])
  })

  it("reads every setting it knows", () => {
    const result = read(`
manifests: [tools, /srv/tools]
workspaces: [/home/alice/work]
backend: docker
limits: { wall_ms: 1000, memory_mb: 64, pids: 10, cpu_ms: 500, cpus: 0.5, disk_mb: 2, output_kb: 3, open_files: 64 }
egress:
  services: { db.test: "127.0.0.1:5432", v6.test: "[::1]:80" }
  private: [10.20.0.0/16, "fd00:1::/32"]
  allow: [api.good.test, "*.cdn.good.test:443"]
undeclared_egress: refuse
undeclared_write: warn
policy_tags: { allow: [eu-only], deny: [experimental] }
region: eu
region_allows_global: true
approvals: { on_mutate: ask }
env: { TZ: Europe/Berlin }
read_only_http: enforce
`)
    expect(result).toMatchObject({
      ok: true,
      config: {
        manifests: ["/etc/tools", "/srv/tools"],
        limits: {
          wallMs: 1000,
          memoryBytes: 64 << 20,
          pids: 10,
          cpuMs: 500,
          cpus: 0.5,
          diskBytes: 2 << 20,
          outputBytes: 3072,
          openFiles: 64,
        },
        egress: {
          services: { "db.test": { address: "127.0.0.1", port: 5432 }, "v6.test": { address: "::1", port: 80 } },
          private: ["10.20.0.0/16", "fd00:1::/32"],
        },
        undeclaredEgress: "refuse",
        undeclaredWrite: "warn",
        approvals: { onMutate: "ask" },
        env: { TZ: "Europe/Berlin" },
        regionAllowsGlobal: true,
      },
    })
  })

  it.each([
    ["undeclared_writes: warn", "undeclared_writes", "undeclared_write"],
    ["limits: { memory: 5 }", "limits.memory", "memory_mb"],
    ["egress: { service: {} }", "egress.service", "services"],
  ])("names the nearest setting for %s", (source, path, near) => {
    expect(faults(source)).toEqual([
      { path, message: expect.stringContaining(`did you mean \`${near}\``), fix: `write \`${near}\`` },
    ])
  })

  it.each([
    ["a list at the top", "- a", ""],
    ["a word outside the choice", "backend: firecracker", "backend"],
    ["a limit as text", 'limits: { pids: "5" }', "limits.pids"],
    ["a limit of zero", "limits: { memory_mb: 0 }", "limits.memory_mb"],
    ["a service without a port", "egress: { services: { db.test: 127.0.0.1 } }", 'egress.services["db.test"]'],
    [
      "a service by name instead of address",
      'egress: { services: { db.test: "localhost:80" } }',
      'egress.services["db.test"]',
    ],
    [
      "a service named by a wildcard",
      'egress: { services: { "*.test": "127.0.0.1:80" } }',
      'egress.services["*.test"]',
    ],
    ["a short-hand address", 'egress: { services: { db.test: "127.1:80" } }', 'egress.services["db.test"]'],
    ["a CIDR with bits beyond its prefix", "egress: { private: [10.0.0.1/8] }", "egress.private[0]"],
    ["a CIDR of everything", "egress: { private: [0.0.0.0/0] }", "egress.private[0]"],
    ["an egress entry that is a star", 'egress: { allow: ["*"] }', "egress.allow[0]"],
    ["a variable the host sets itself", "env: { http_proxy: x }", "env.http_proxy"],
    ["a loader path", "env: { PATH: /x }", "env.PATH"],
    ["a tilde", "manifests: [~/tools]", "manifests[0]"],
    ["an alias", "manifests: &a [x]\nworkspaces: *a", "manifests"],
    ["a variable the host sets itself, in any case", "env: { Http_Proxy: x }", "env.Http_Proxy"],
    ["a name that no variable can have", 'env: { "a-b": x }', "env.a-b"],
    ["a value that is no text", "env: { A: 5 }", "env.A"],
    ["a mapping where a list belongs", "manifests: { a: b }", "manifests"],
    ["a number of cores that is none", "limits: { cpus: 0 }", "limits.cpus"],
    ["a flag in words", "region_allows_global: often", "region_allows_global"],
    ["an engine by its name", "docker: { engine: docker.sock }", "docker.engine"],
    ["a tag in capitals", "policy_tags: { deny: [Beta] }", "policy_tags.deny[0]"],
    ["a budget below zero", "egress: { budgets: { requests: -1 } }", "egress.budgets.requests"],
    ["an empty service", "egress: { services: { db.test: } }", 'egress.services["db.test"]'],
    ["a duplicate key", "backend: docker\nbackend: namespace", "backend"],
  ])("refuses %s and says where", (_what, source, path) => {
    expect(faults(source)).toEqual([{ path, message: expect.stringMatching(/./), fix: expect.stringMatching(/./) }])
  })
})

describe("a store on a server", () => {
  const postgres = (settings: string) => `store: { postgres: { ${settings} } }`
  it("is named by a file that holds its URL, relative to the config", () => {
    expect(read(postgres("url_file: url"))).toMatchObject({
      config: { store: { urlFile: "/etc/url", verify: true } },
    })
    expect(read(postgres("url_file: /u, ca_file: ca.pem, connections: 3"))).toMatchObject({
      config: { store: { urlFile: "/u", verify: true, caFile: "/etc/ca.pem", connections: 3 } },
    })
    expect(read(postgres("url_file: /u, tls: off"))).toMatchObject({ config: { store: { verify: false } } })
    expect(read("")).not.toHaveProperty("config.store")
  })
  it.each([
    ["url_file: /u, tls: off, ca_file: ca", "store.postgres", "contradict"],
    ["url_file: /u, tls: maybe", "store.postgres.tls", "maybe"],
    ["url_file: /u, url: 'postgres://u:secret@h/d'", "store.postgres.url", "url"],
    ["connections: 2", "store.postgres.url_file", "missing"],
    ["url_file: /u, connections: 0", "store.postgres.connections", "0"],
  ])("is refused where it is configured otherwise: %s", (settings, path, words) => {
    const result = read(postgres(settings))
    expect(result.ok).toBe(false)
    if (result.ok) return
    expect(result.diagnostics[0]?.path).toBe(path)
    expect(JSON.stringify(result.diagnostics)).toContain(words)
  })
})

describe("a vault on a server", () => {
  const kv = (settings: string) => `vault: { kv: { ${settings} } }`
  it("is named by its address and one way to sign in, with files relative to the config", () => {
    expect(read(kv("address: https://vault.test:8200, token_file: token"))).toMatchObject({
      config: {
        vault: {
          address: "https://vault.test:8200/",
          mount: "secret",
          prefix: "caisson",
          auth: { by: "token", tokenFile: "/etc/token" },
        },
      },
    })
    const role = "app_role: { role_id_file: /r, secret_id_file: s }, mount: kv/team, namespace: a, ca_file: ca.pem"
    expect(read(kv(`address: "http://[::1]:8200/", ${role}`))).toMatchObject({
      config: {
        vault: {
          mount: "kv/team",
          caFile: "/etc/ca.pem",
          auth: { by: "app-role", mount: "approle", roleIdFile: "/r", secretIdFile: "/etc/s" },
        },
      },
    })
  })
  it.each([
    ["address: http://vault.test/, token_file: t", "vault.kv.address", "in the clear"],
    ["address: http://10.0.0.1/, token_file: t", "vault.kv.address", "in the clear"],
    ["address: 'https://me:secret@vault.test/', token_file: t", "vault.kv.address", "credentials"],
    ["address: 'ftp://vault.test/', token_file: t", "vault.kv.address", "no web address"],
    ["address: https://vault.test/", "vault.kv", "exactly one way"],
    [
      "address: https://vault.test/, token_file: t, app_role: { role_id_file: r, secret_id_file: s }",
      "vault.kv",
      "exactly one way",
    ],
    ["address: https://vault.test/, token_file: t, mount: ../x", "vault.kv.mount", "../x"],
    ["address: https://vault.test/, token: abc", "vault.kv.token", "token"],
  ])("is refused as %s", (settings, path, message) => {
    expect(faults(kv(settings))).toContainEqual(
      expect.objectContaining({ path, message: expect.stringContaining(message) as string }),
    )
  })
})
