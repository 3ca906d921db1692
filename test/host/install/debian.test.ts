import { expect, it } from "vitest"
import { keptSource } from "../../../src/host/install/methods/apt-sources.ts"
import { baseStatus } from "../../../src/host/install/methods/debian-base.ts"

it("sources by the web are kept, without source packages, logins and media; keys are named where they are shown", () => {
  const list = keptSource({
    name: "sources.list",
    text: [
      "# deb http://old.test/ x main",
      "deb [signed-by=/etc/apt/keyrings/a.gpg] http://a.test/debian bookworm main",
      "deb-src http://a.test/debian bookworm main",
      "deb https://user:secret@b.test/ x main",
      "deb cdrom:[disc]/ x main",
    ].join("\n"),
  })
  expect(list.urls.map(({ host }) => host)).toEqual(["a.test"])
  expect(list.text).toBe("deb [signed-by=/run/caisson/apt/keyrings/a.gpg] http://a.test/debian bookworm main\n")
  const stanzas = keptSource({
    name: "debian.sources",
    text: "Types: deb deb-src\n# note\nURIs: http://a.test/debian\nSuites: x\nComponents: main\n\nTypes: deb\nURIs: https://u:p@b.test/\nSuites: x\n\nTypes: deb\nEnabled: no\nURIs: http://c.test/\nSuites: x\n",
  })
  expect(stanzas.urls.map(({ host }) => host)).toEqual(["a.test"])
  expect(stanzas.text).toContain("Types: deb\n")
  expect(stanzas.text).not.toMatch(/deb-src|b\.test|c\.test|note/)
})

it("the base is what is essential or required with all it depends on, and nothing that somebody installed", () => {
  const of = (name: string, ...lines: readonly string[]): string =>
    [`Package: ${name}`, "Status: install ok installed", ...lines].join("\n")
  const status = [
    of("bash", "Essential: yes", "Pre-Depends: libc6 (>= 2.36), awk"),
    of("libc6", "Priority: optional", "Depends: libgcc-s1 | libgcc1"),
    of("libgcc-s1"),
    of("mawk", "Provides: awk"),
    of("jq", "Depends: libonig5"),
    of("libonig5"),
    of("gone", "Priority: required").replace("ok installed", "ok not-installed").replace("install ok", "deinstall ok"),
  ].join("\n\n")
  const names = [...baseStatus(status).matchAll(/^Package: (.+)$/gm)].map(([, name]) => name)
  expect(names).toEqual(["bash", "libc6", "libgcc-s1", "mawk"])
})
