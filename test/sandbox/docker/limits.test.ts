import { afterAll, beforeEach, expect, it } from "vitest"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers, mebibyte, openPlace, type Place } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let place: Place

engineSuite("limits of a call in a container", engine, () => {
  beforeEach(() => {
    place = openPlace(socket)
    return async () => {
      await place[Symbol.asyncDispose]()
      expect(await leftovers(socket, place.folder)).toMatchObject({ mounts: [], containers: 0 })
    }
  })
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("stops the whole tree at the deadline, sessions of its own and ignored signals included", async () => {
    const stubborn =
      "perl -e '$SIG{$_}=q(IGNORE) for qw(TERM INT HUP); if (!fork) { syscall(112); sleep 600 } sleep 600' & sleep 600"
    const { exited, out } = await place.sh(`echo begun; ${stubborn}`, { limits: { wallMs: 700 } })
    expect(exited.ending).toEqual({ by: "limit", limit: "wall" })
    expect(out).toBe("begun\n")
  })

  it("tells memory apart from failure", async () => {
    const { exited } = await place.run(["/usr/bin/perl", "-e", "my @a; push @a, 'x' x 1048576 for 1 .. 4096"], {
      limits: { memoryBytes: 64 * mebibyte },
    })
    expect(exited.ending).toEqual({ by: "limit", limit: "memory" })
    expect(exited.usage.peakMemoryBytes ?? 0).toBeGreaterThan(32 * mebibyte)
  })

  it("stops a fork bomb at the process limit and names it", async () => {
    const { exited } = await place.run(
      [
        "/usr/bin/perl",
        "-e",
        "my $n = 0; while (1) { my $p = fork; exit 9 unless defined $p; if (!$p) { sleep 60; exit } $n++ }",
      ],
      { limits: { pids: 16 } },
    )
    expect(exited.ending).toEqual({ by: "limit", limit: "pids" })
    expect(exited.denied).toContainEqual({
      layer: "limit",
      reason: "pids",
      target: "16 processes",
      count: expect.any(Number) as number,
    })
  })

  it("lets exactly as many processes run as the limit says", async () => {
    const count = "my $n = 1; while (defined(my $p = fork)) { if (!$p) { sleep 60; exit } $n++ } print $n"
    expect((await place.run(["/usr/bin/perl", "-e", count], { limits: { pids: 16 } })).out).toBe("16")
  })

  it.each(["/workspace/big", "/tmp/big", "$HOME/big", "/dev/shm/big"])("bounds what is written to %s", async (path) => {
    const { exited } = await place.sh(`dd if=/dev/zero of=${path} bs=1048576 count=64 2>/dev/null`, {
      limits: { diskBytes: 8 * mebibyte },
    })
    expect(exited.ending).toEqual({ by: "limit", limit: "disk" })
    expect(exited.writes.bytes).toBeLessThanOrEqual(8 * mebibyte)
  })

  it("takes a limit of memory as it was declared, whatever may be written to disk", async () => {
    const { exited, out } = await place.run(
      ["/usr/bin/perl", "-e", '$| = 1; my @a; for (1 .. 400) { push @a, "x" x 1048576; print "$_\n" }'],
      { limits: { memoryBytes: 64 * mebibyte, diskBytes: 900 * mebibyte } },
    )
    expect(exited.ending).toEqual({ by: "limit", limit: "memory" })
    expect(Number(out.trim().split("\n").at(-1))).toBeLessThanOrEqual(64)
    expect(exited.denied).toEqual([
      { layer: "limit", reason: "memory", target: `${64 * mebibyte} bytes of memory`, count: 1 },
    ])
  })

  it("does not count what lies on disk as memory", async () => {
    const { exited } = await place.sh("dd if=/dev/zero of=/tmp/big bs=1048576 count=200 2>/dev/null", {
      limits: { memoryBytes: 64 * mebibyte, diskBytes: 400 * mebibyte },
    })
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
  })

  it.each([
    [-1, { by: "exit", code: 0 }],
    [0, { by: "exit", code: 0 }],
    [1, { by: "limit", limit: "disk" }],
  ])("takes a limit of bytes exactly: %d more end so", async (more, ending) => {
    const half = mebibyte / 2
    const { exited } = await place.sh(`head -c ${half} /dev/zero > a; head -c ${half + more} /dev/zero > /tmp/b`, {
      limits: { diskBytes: mebibyte },
    })
    expect(exited.ending).toEqual(ending)
  })

  it("ends a call that fills the disk with files it deleted and holds open", async () => {
    const fill =
      'my $b = "x" x 1048576; for (1 .. 1000) { open(my $f, ">", "/tmp/f$_"); unlink "/tmp/f$_"; print $f $b; push @h, $f; select undef, undef, undef, 0.01 } print "finished"'
    const { exited, out } = await place.run(["/usr/bin/perl", "-e", fill], { limits: { diskBytes: 8 * mebibyte } })
    expect(exited.ending).toEqual({ by: "limit", limit: "disk" })
    expect(out).toBe("")
  })

  it.each([1000, 300])("stops a program that uses up %d ms of processor time and names the limit", async (cpuMs) => {
    const { exited } = await place.run(["/usr/bin/perl", "-e", "1 while 1"], { limits: { cpuMs } })
    expect(exited.ending).toEqual({ by: "limit", limit: "cpu" })
    expect(exited.denied).toEqual([{ layer: "limit", reason: "cpu", target: `${cpuMs} ms of CPU`, count: 1 }])
  })

  it("keeps output up to its cap, counts the rest and says so", async () => {
    const { exited } = await place.run(["/usr/bin/perl", "-e", "print 'x' x 100 for 1 .. 10000"], {
      limits: { outputBytes: 1000 },
    })
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
    expect(exited.stdout).toMatchObject({ truncated: true, total: 1_000_000 })
    expect(exited.stdout.bytes.length).toBe(1000)
  })

  it("stops a flood", async () => {
    const { exited } = await place.run(["/usr/bin/perl", "-e", "my $x = 'y' x 65536; print $x while 1"], {
      limits: { outputBytes: 1000 },
    })
    expect(exited.ending).toEqual({ by: "limit", limit: "output" })
  })

  it("bounds open files and makes no core dumps", async () => {
    const { out } = await place.sh("ulimit -n; ulimit -c", { limits: { openFiles: 77 } })
    expect(out).toBe("77\n0\n")
  })

  it("tells death by a signal", async () => {
    expect((await place.sh("kill -SEGV $$")).exited.ending).toEqual({ by: "signal", signal: "SIGSEGV" })
    expect((await place.sh("kill -KILL $$")).exited.ending).toEqual({ by: "signal", signal: "SIGKILL" })
  })

  it("stops a program that makes a child although it may not", async () => {
    const { exited } = await place.run(["/usr/bin/perl", "-e", "fork; print 1"], { executables: { children: false } })
    expect(exited.ending).toEqual({ by: "exec-denied" })
    const alone = await place.run(["/usr/bin/perl", "-e", "print 1"], { executables: { children: false } })
    expect(alone.exited.ending).toEqual({ by: "exit", code: 0 })
  })

  it("stops at once when cancelled, before and during the run", async () => {
    const cancel = new AbortController()
    const running = place.sh("echo begun; sleep 600", {}, { cancel: cancel.signal })
    setTimeout(() => cancel.abort(), 600)
    expect((await running).exited.ending).toEqual({ by: "cancelled" })
    expect((await place.sh("sleep 600", {}, { cancel: AbortSignal.abort() })).exited.ending).toEqual({
      by: "cancelled",
    })
  })

  it("waits for no process that the program left behind", async () => {
    const { exited } = await place.sh("sleep 600 >/dev/null 2>&1 & echo done")
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
  })
})
