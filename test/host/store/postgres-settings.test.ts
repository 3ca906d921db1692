/** Which server a URL means, and how it is spoken to. */
import { describe, expect, it } from "vitest"
import { postgresSettings } from "../../../src/host/store/postgres/settings.ts"

const verified = { verify: true }
describe("a URL of a PostgreSQL", () => {
  // biome-ignore format: a table reads by rows
  it.each([
    ["postgres://u:p%40ss@db.test:6543/d", verified, { host: "db.test", port: 6543, user: "u", password: "p@ss", database: "d", tls: {} }],
    ["postgresql://u@10.0.0.9/d\n", verified, { host: "10.0.0.9", port: 5432, user: "u", database: "d", tls: {} }],
    ["postgres://u@127.0.0.1/d", verified, { host: "127.0.0.1", port: 5432, user: "u", database: "d" }],
    ["postgres://u@[::1]:1/d", verified, { host: "::1", port: 1, user: "u", database: "d" }],
    ["postgres://u@localhost/d", { verify: true, ca: "PEM" }, { host: "localhost", port: 5432, user: "u", database: "d", tls: { ca: "PEM" } }],
    ["postgres://u@db.test/d", { verify: false }, { host: "db.test", port: 5432, user: "u", database: "d" }],
    ["postgres://u@/d?host=/run/postgresql", verified, { host: "/run/postgresql", port: 5432, user: "u", database: "d" }],
    ["postgres://u:p@/d?host=%2Frun", verified, undefined],
  ])("%j means one server", (url, tls, settings) => {
    const read = postgresSettings(url, tls)
    expect(read.ok ? read.settings : undefined).toEqual(settings)
  })
  it.each([
    "",
    "hunter2",
    "http://u:hunter2@h/d",
    "postgres://u:hunter2@h",
    "postgres://u:hunter2@h/",
    "postgres://:hunter2@h/d",
    "postgres://u:hunter2@h/d?sslmode=disable",
    "postgres://u:hunter2@h/d?host=/run&sslmode=disable",
    "postgres://u:hunter2%zz@h/d",
    "postgres://u:hunter2@h/a/b",
    "postgres://u:hunter2@h/d#x",
  ])("that is none, or says more, is refused without its words: %j", (url) => {
    const read = postgresSettings(url, verified)
    expect(read.ok).toBe(false)
    expect(JSON.stringify(read)).not.toContain("hunter2")
  })
})
