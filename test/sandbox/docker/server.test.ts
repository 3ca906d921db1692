import { connect } from "node:net"
import { Readable } from "node:stream"
import type { StartedTestContainer } from "testcontainers"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase } from "./local-base.ts"
import { openPlace } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const mark = `s${process.pid}`
const image = `caisson/test-base:${mark}`
const port = 20_000 + (process.pid % 10_000)
const server = `use IO::Socket::INET; $| = 1;
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => ${port}, Listen => 5, ReuseAddr => 1) or die $!;
print "ready\\n"; while (my $c = $s->accept) { my $line = <$c>; print $c "served: $line"; close $c }`

engineSuite("a server in a container of its own", engine, () => {
  let started: StartedTestContainer | undefined
  beforeAll(async () => {
    if (!engine.ok) return
    process.env["DOCKER_HOST"] = `unix://${socket}`
    process.env["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    // The engine of the tests has no bridge to ask for the host's address.
    process.env["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"
    // It looks for an engine when it is loaded.
    const { GenericContainer, Wait } = await import("testcontainers")
    const api = openEngine({ origin: "given", socketPath: socket })
    const loaded = await api.load(Readable.from([(await localBase(mark)).bytes]))
    if (!loaded.ok) throw new Error(loaded.failure.message)
    started = await new GenericContainer(image)
      .withNetworkMode("host")
      .withEntrypoint(["/usr/bin/perl"])
      .withCommand(["-e", server])
      .withWaitStrategy(Wait.forLogMessage("ready"))
      .start()
  })
  afterAll(async () => {
    await started?.stop()
    if (!engine.ok) return
    await openEngine({ origin: "given", socketPath: socket }).removeImage(image)
    await engine[Symbol.asyncDispose]()
  })

  it("is reached through the call's channel and by no other way", async () => {
    await using place = openPlace(socket)
    const dial = (address: string, at: number): string =>
      `my $s = IO::Socket::INET->new(PeerAddr => "${address}", PeerPort => ${at}, Timeout => 5); print $s ? do { print $s "hello\\n"; <$s> } : "refused\\n";`
    const prepared = await place.prepare({ network: { proxyPort: 3128, transparentPorts: [80], dns: false } })
    if (prepared.channel === "none") throw new Error("no channel")
    prepared.channel.transparent.get(80)?.on("connection", (inside) => {
      const outside = connect(port, "127.0.0.1")
      for (const [from, to] of [
        [inside, outside],
        [outside, inside],
      ] as const)
        from.on("error", () => to.destroy()).pipe(to)
    })
    const argv = ["/usr/bin/perl", "-e", `use IO::Socket::INET; ${dial("198.18.0.9", 80)} ${dial("127.0.0.1", port)}`]
    const exited = await prepared.run({ argv, workspace: place.workspace })
    if (!exited.ok) throw new Error(exited.message)
    expect(Buffer.from(exited.stdout.bytes).toString()).toBe("served: hello\nrefused\n")
  })
})
