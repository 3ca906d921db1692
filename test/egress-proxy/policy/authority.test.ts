/** The authority grammar, by property and by comparison with what other parsers make of the same text. */
import fc from "fast-check"
import koffi from "koffi"
import { describe, expect, it } from "vitest"
import { parseAuthority, parseHost, parseName } from "../../../src/egress-proxy/policy/authority.ts"
import { hostLike, latinBytes, seeded } from "../arbitraries.ts"

const canonical = (
  host:
    | { readonly kind: "name"; readonly name: string }
    | { readonly kind: "ip"; readonly ip: { readonly family: 4 | 6; readonly text: string } },
): string => (host.kind === "name" ? host.name : host.ip.family === 6 ? `[${host.ip.text}]` : host.ip.text)

describe("the authority grammar", () => {
  it("refuses any bytes, or turns them into a canonical form that parses to itself", () => {
    const check = (text: string) => {
      const parsed = parseAuthority(text)
      if (!parsed.ok) return
      expect(parsed.value.text).toMatch(/^([a-z0-9._-]+|\[[0-9a-f:]+\]):[1-9][0-9]{0,4}$/)
      const again = parseAuthority(parsed.value.text)
      expect(again.ok && again.value.text).toBe(parsed.value.text)
    }
    fc.assert(
      fc.property(
        hostLike,
        fc.oneof(fc.nat(70_000).map(String), fc.constantFrom("443", "0443", "", "https")),
        (host, port) => check(`${host}:${port}`),
      ),
      seeded,
    )
    fc.assert(
      fc.property(latinBytes, (bytes) => check(bytes.toString("latin1"))),
      seeded,
    )
  })

  it("gives raw name bytes the same reading as text", () => {
    fc.assert(
      fc.property(latinBytes, (bytes) => {
        const text = bytes.toString("latin1")
        const asName = parseName(bytes)
        const asHost = parseHost(text)
        if (asName.ok) expect(asName).toEqual(asHost)
        else if (!text.startsWith("[")) expect(asHost).toEqual(asName)
      }),
      seeded,
    )
  })

  it("accepts nothing that `new URL` reads as another host", () => {
    fc.assert(
      fc.property(hostLike, (text) => {
        const parsed = parseHost(text)
        if (!parsed.ok || text === "0") return
        const url = URL.parse(`http://${text}/`)
        if (url === null) return
        expect(url.hostname.replace(/\.$/, "")).toBe(canonical(parsed.value))
        expect([url.username, url.password, url.port, url.pathname]).toEqual(["", "", "", "/"])
      }),
      seeded,
    )
  })

  it("accepts no name that glibc reads as an address, and no address that it reads as another", () => {
    const numeric = numericHost()
    fc.assert(
      fc.property(hostLike, (text) => {
        const parsed = parseHost(text)
        if (!parsed.ok) return
        const spelled = parsed.value.kind === "name" ? parsed.value.name : parsed.value.ip.text
        const read = numeric(spelled)
        if (parsed.value.kind === "name") expect(read).toBeUndefined()
        else expect(read).toEqual(parsed.value.ip.groups)
      }),
      seeded,
    )
  })
})

/** glibc's `getaddrinfo` with AI_NUMERICHOST: the address as 16-bit groups, or undefined for what is none. */
function numericHost(): (text: string) => readonly number[] | undefined {
  const libc = koffi.load("libc.so.6")
  koffi.struct("corpus_addrinfo", {
    flags: "int",
    family: "int",
    socktype: "int",
    protocol: "int",
    addrlen: "uint32",
    addr: "void *",
    canonname: "void *",
    next: "void *",
  })
  const getaddrinfo = libc.func(
    "int getaddrinfo(const char *node, const char *service, const corpus_addrinfo *hints, _Out_ void **result)",
  )
  const freeaddrinfo = libc.func("void freeaddrinfo(void *result)")
  const hints = { flags: 4, family: 0, socktype: 1, protocol: 0, addrlen: 0, addr: null, canonname: null, next: null }
  return (text) => {
    const result: unknown[] = [null]
    if (getaddrinfo(text, null, hints, result) !== 0) return undefined
    const info = koffi.decode(result[0], "corpus_addrinfo") as { family: number; addrlen: number; addr: unknown }
    const bytes = koffi.decode(info.addr, koffi.array("uint8", info.addrlen)) as ArrayLike<number>
    freeaddrinfo(result[0])
    const at = info.family === 2 ? { start: 4, end: 8 } : { start: 8, end: 24 }
    const groups: number[] = []
    for (let index = at.start; index < at.end; index += 2)
      groups.push(((bytes[index] ?? 0) << 8) | (bytes[index + 1] ?? 0))
    return groups
  }
}
