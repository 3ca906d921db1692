import { describe, expect, it } from "vitest"
import { type PackageMethod, parsePackage } from "../../../src/manifest/values/package-name.ts"
import type { InstallMethod } from "../../../src/manifest/types.ts"
import { asDriver, cliFront, errors, load, warnings } from "../from-text.ts"

const HASH = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
const driver = (method: string, mode: "strict" | "compat" = "compat") =>
  load("DRIVER.md", cliFront({ extra: `install: [${method}]` }), mode)
const install = (method: string): InstallMethod | undefined => asDriver(driver(method)).install[0]

describe("an install method", () => {
  it.each([
    ["{ method: apt, package: jq=1.6-2 }", { method: "apt", package: "jq=1.6-2", name: "jq", version: "1.6-2" }],
    ["{ method: brew, package: acme/tap/prog }", { method: "brew", name: "acme/tap/prog" }],
    ['{ method: npm, package: "@x/y@^2", global: true }', { method: "npm", name: "@x/y", version: "^2", global: true }],
    ["{ method: npm, package: left-pad }", { method: "npm", name: "left-pad", global: false }],
    [
      '{ method: pip, package: "a_b>=1,<2", user: true }',
      { method: "pip", name: "a_b", version: ">=1,<2", user: true },
    ],
    ['{ method: cargo, package: "ripgrep@14" }', { method: "cargo", name: "ripgrep", version: "14" }],
    [
      '{ method: go, package: "golang.org/x/tools/gopls@v0.16.0" }',
      { method: "go", name: "golang.org/x/tools/gopls", version: "v0.16.0" },
    ],
    [
      `{ method: curl, url: "https://x.test/i.sh", verify_sha256: ${HASH} }`,
      { method: "curl", url: "https://x.test/i.sh", sha256: HASH },
    ],
    [
      `{ method: download, url: "https://X.test:443/i.tgz", extract_bin: bin/i, verify_sha256: ${HASH} }`,
      { method: "download", url: "https://x.test/i.tgz", extractBin: "bin/i", sha256: HASH },
    ],
    ["{ method: vendored, path: ./bin/prog }", { method: "vendored", path: "./bin/prog" }],
  ])("is typed: %s", (written, recipe) => {
    expect(install(written)).toMatchObject({ usable: true, ...recipe })
  })
  it.each([
    ["install-package", "package", '{ method: npm, package: "https://evil.test/x.tgz" }'],
    ["install-package", "package", "{ method: npm, package: someone/repo }"],
    ["install-package", "package", '{ method: npm, package: "file:/etc" }'],
    ["install-package", "package", '{ method: npm, package: "x@npm:evil@1" }'],
    ["install-package", "package", "{ method: apt, package: x/../y }"],
    ["install-package", "package", "{ method: apt, package: x/stable }"],
    ["install-package", "package", '{ method: go, package: "x@latest" }'],
    ["install-url", "url", `{ method: curl, url: "https://u:p@x.test/", verify_sha256: ${HASH} }`],
    ["install-url-placeholder", "url", `{ method: curl, url: "https://x.test/<version>/i", verify_sha256: ${HASH} }`],
    ["install-url-placeholder", "url", `{ method: curl, url: "https://x.test/\${v}/i", verify_sha256: ${HASH} }`],
    ["install-url-placeholder", "url", `{ method: curl, url: "https://x.test/{arch}", verify_sha256: ${HASH} }`],
    [
      "install-hash-placeholder",
      "verify_sha256",
      `{ method: curl, url: "https://x.test/", verify_sha256: "${"0".repeat(64)}" }`,
    ],
    [
      "install-hash-placeholder",
      "verify_sha256",
      `{ method: curl, url: "https://x.test/", verify_sha256: ${"deadbeef".repeat(8)} }`,
    ],
    ["install-url", "url", `{ method: curl, url: "https://\${input.host}/i.sh", verify_sha256: ${HASH} }`],
    [
      "path-escape",
      "extract_bin",
      `{ method: download, url: "https://x.test/", extract_bin: ../../bin/sh, verify_sha256: ${HASH} }`,
    ],
    [
      "path-escape",
      "extract_bin",
      `{ method: download, url: "https://x.test/", extract_bin: /bin/sh, verify_sha256: ${HASH} }`,
    ],
  ])("that is %s in %s has no recipe in compat mode and is refused in strict mode: %s", (rule, key, written) => {
    expect(install(written)).toEqual({ usable: false, method: expect.any(String), reason: expect.any(String) })
    expect(warnings(driver(written))).toEqual([`${rule} @ install[0].${key}`])
    expect(errors(driver(written, "strict"))).toEqual([`${rule} @ install[0].${key}`])
  })
  it.each<[PackageMethod, string]>([
    ["npm", "-g"],
    ["npm", "a b"],
    ["pip", "x @ https://evil.test/x.whl"],
    ["pip", "git+https://evil.test/x"],
    ["cargo", "x;y"],
    ["brew", "a/b/c/d"],
    ["apt", "UPPER"],
    ["dnf", "./x.rpm"],
    ["scoop", "a/b/c"],
    ["go", "../x"],
    ["go", "x.test/../y"],
  ])("of %s takes no `%s` for a name", (method, text) => {
    expect(parsePackage(method, text)).toBeUndefined()
  })
})
