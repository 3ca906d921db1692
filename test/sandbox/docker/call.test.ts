import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeEach, expect, it } from "vitest"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers, openPlace, type Place } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let place: Place

engineSuite("one call in a container", engine, () => {
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

  it("keeps standard output and standard error apart and tells the exit code", async () => {
    const { exited, out, err } = await place.sh("echo to-out; echo to-err >&2; exit 7")
    expect({ ending: exited.ending, out, err }).toEqual({
      ending: { by: "exit", code: 7 },
      out: "to-out\n",
      err: "to-err\n",
    })
  })

  it("passes input of any size and sees its end", async () => {
    const stdin = "x".repeat(1_000_000)
    const { out } = await place.run(["/usr/bin/perl", "-e", "local $/; print length(<STDIN>)"], {}, { stdin })
    expect(out).toBe("1000000")
    expect((await place.run(["/usr/bin/cat"])).out).toBe("")
  })

  it("passes arguments and environment byte for byte with its folder and nothing more", async () => {
    const odd = ["", " ", "a'b\"c$d`e`", "line\nbreak", "-n", "ünï", "*"]
    const shown = await place.run(["/usr/bin/perl", "-e", "print join('|', @ARGV)", ...odd])
    expect(shown.out).toBe(odd.join("|"))
    const env = { PATH: "/usr/bin", TOKEN: "a=b\nc", EMPTY: "" }
    const seen = await place.run(["/usr/bin/perl", "-e", "print join('|', map { \"$_=$ENV{$_}\" } sort keys %ENV)"], {
      env,
    })
    expect(seen.out).toBe("EMPTY=|PATH=/usr/bin|PWD=/workspace|TOKEN=a=b\nc")
  })

  it("takes more arguments than a command line of the engine could", async () => {
    const many = Array.from({ length: 5_000 }, (_, index) => `argument-${index}-${"y".repeat(100)}`)
    const { out } = await place.run(["/usr/bin/perl", "-e", "print scalar(@ARGV)", ...many])
    expect(out).toBe("5000")
  })

  it("gives the program three descriptors and no other", async () => {
    const { out } = await place.run([
      "/usr/bin/perl",
      "-e",
      "opendir(D, '/proc/self/fd'); my $own = fileno(D) // -1; print join(',', sort { $a <=> $b } grep { /\\d/ && -e \"/proc/self/fd/$_\" && $_ != $own } readdir D)",
    ])
    expect(out).toBe("0,1,2")
  })

  it("shows the workspace's private files, and none of the host's", async () => {
    writeFileSync(join(place.workspace, "secret"), "mine\n", { mode: 0o600 })
    const { out } = await place.sh("pwd; cat secret; ls -A / /home /root /var/lib 2>/dev/null; cat /etc/shadow")
    expect(out).toContain("/workspace\nmine\n")
    expect(out).not.toContain("root:")
    expect((await place.sh(`cat ${place.workspace}/secret`)).exited.ending).toEqual({ by: "exit", code: 1 })
  })

  it("leaves the workspace alone until the layer is committed", async () => {
    writeFileSync(join(place.workspace, "kept"), "before")
    writeFileSync(join(place.workspace, "gone"), "x")
    const { exited } = await place.sh("echo after > kept; rm gone; mkdir d; echo new > d/n")
    expect(exited.writes.effects.map(({ kind, path }) => [kind, path])).toEqual([
      ["mkdir", "d"],
      ["create", "d/n"],
      ["delete", "gone"],
      ["modify", "kept"],
    ])
    expect(readFileSync(join(place.workspace, "kept"), "utf8")).toBe("before")
    expect(await exited.commit()).toEqual({ ok: true })
    expect(readFileSync(join(place.workspace, "kept"), "utf8")).toBe("after\n")
    expect(readFileSync(join(place.workspace, "d/n"), "utf8")).toBe("new\n")
    expect(existsSync(join(place.workspace, "gone"))).toBe(false)
  })

  it("drops the layer when it is discarded", async () => {
    const { exited } = await place.sh("echo x > made")
    await exited.discard()
    expect(existsSync(join(place.workspace, "made"))).toBe(false)
  })

  it("refuses to commit over a file that changed meanwhile", async () => {
    writeFileSync(join(place.workspace, "f"), "one")
    const { exited } = await place.sh("echo two > f")
    writeFileSync(join(place.workspace, "f"), "three")
    expect(await exited.commit()).toEqual({ ok: false, reason: "conflict", paths: ["f"] })
    expect(readFileSync(join(place.workspace, "f"), "utf8")).toBe("three")
  })

  it("runs under a host that leaves nothing to others (umask 077), with files and a partial view", async () => {
    const before = process.umask(0o077)
    try {
      await using strict = openPlace(socket)
      mkdirSync(join(strict.workspace, "docs"))
      writeFileSync(join(strict.workspace, "docs/a"), "seen")
      const { out, err } = await strict.sh("cat docs/a /run/caisson/x/file; echo made > /tmp/x; cat /tmp/x; id -un", {
        files: { "/run/caisson/x/file": Buffer.from(" placed ") },
        view: { read: ["docs/**"], deny: [] },
        write: [],
      })
      expect([out, err]).toEqual(["seen placed made\ntool\n", ""])
    } finally {
      process.umask(before)
    }
  })

  it("hides what the view denies", async () => {
    mkdirSync(join(place.workspace, "private"))
    writeFileSync(join(place.workspace, "private/key"), "k")
    writeFileSync(join(place.workspace, "open"), "o")
    const { out, exited } = await place.sh("cat open; cat private/key", {
      view: { read: ["**"], deny: ["private/**", "private"] },
    })
    expect(out).toBe("o")
    expect(exited.ending).toEqual({ by: "exit", code: 1 })
  })

  it("keeps the driver's own state in its home and nothing else of it", async () => {
    const home = join(place.folder, "home")
    mkdirSync(home)
    const change = { home: { dir: home, keep: ["state/**"] } }
    const first = await place.sh(
      "mkdir -p $HOME/state $HOME/cache; echo 1 > $HOME/state/token; echo 2 > $HOME/cache/x",
      change,
    )
    expect(await first.exited.keepHome()).toEqual({ ok: true })
    await first.exited.discard()
    expect(readFileSync(join(home, "state/token"), "utf8")).toBe("1\n")
    expect(existsSync(join(home, "cache/x"))).toBe(false)
    expect((await place.sh("cat $HOME/state/token", change)).out).toBe("1\n")
  })

  it("places read-only files where the profile says", async () => {
    const files = { "/run/caisson/ca.pem": Buffer.from("certificate") }
    const { out, exited } = await place.sh(
      "cat /run/caisson/ca.pem; ls -A /run/caisson; echo x > /run/caisson/ca.pem",
      { files },
    )
    expect(out).toBe("certificateca.pem\n")
    expect(exited.ending.by).toBe("exit")
    expect(exited.ending).not.toEqual({ by: "exit", code: 0 })
  })

  it("gives a terminal to a program that insists on one", async () => {
    const { out } = await place.run(
      ["/usr/bin/perl", "-e", 'print((-t STDIN && -t STDOUT && -t STDERR) ? "tty\\n" : "none\\n")'],
      { tty: true },
    )
    expect(out).toBe("tty\n")
  })

  it("runs a bundle of the driver's own", async () => {
    const bundle = join(place.folder, "bundle")
    mkdirSync(bundle)
    writeFileSync(join(bundle, "tool"), "#!/usr/bin/sh\necho bundled\n")
    chmodSync(join(bundle, "tool"), 0o755)
    const { out } = await place.run(["/opt/driver/tool"], { executables: { bundles: { [bundle]: "/opt/driver" } } })
    expect(out).toBe("bundled\n")
  })

  it("says that a program which is not there could not be started", async () => {
    const { exited } = await place.run(["/usr/bin/id-not-there"])
    expect(exited.ending.by).toBe("infrastructure")
  })

  it("refuses a workspace that does not exist", async () => {
    const prepared = await place.prepare()
    const answer = await prepared.run({ argv: ["/usr/bin/true"], workspace: join(place.folder, "nowhere") })
    expect(answer).toMatchObject({ ok: false, control: "workspace" })
  })

  it("lets go of a sandbox that was prepared and never used", async () => {
    const prepared = await place.prepare()
    await prepared[Symbol.asyncDispose]()
  })
})
