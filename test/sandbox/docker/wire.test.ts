import { execFileSync } from "node:child_process"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { bridgeCalls, parseStatus } from "../../../src/sandbox/docker/container/bridge-words.ts"
import { encodeJob } from "../../../src/sandbox/process/job-wire.ts"

/** The bridge's own reading of a job, in its own language. */
const reader = `
binmode STDIN; binmode STDOUT; local $/; my $wire = <STDIN>; my $at = 4;
sub number { my $value = unpack("V", substr($wire, $at, 4)); $at += 4; return $value }
sub field { my $length = number(); my $bytes = substr($wire, $at, $length); $at += $length; return $bytes }
sub fields { my $count = number(); return map { field() } 1 .. $count }
my ($program, $folder, $filter) = (field(), field(), field());
my @parts = ($program, $folder, unpack("H*", $filter));
for (1 .. 3) { my @list = fields(); push @parts, scalar(@list), map { unpack("H*", $_) } @list }
push @parts, number(), number(), number(), length($wire) - $at, unpack("V", $wire) + 4 - length($wire);
print join("|", @parts);`
const hex = (text: string): string => Buffer.from(text).toString("hex")

describe("the job's wire", () => {
  it("is read by perl as it was written, whatever the bytes", () => {
    const word = fc.string({ unit: "binary", maxLength: 12 }).filter((text) => !text.includes("\0"))
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 6 }),
        fc.dictionary(fc.stringMatching(/^[A-Z_]{1,6}$/), word, { maxKeys: 4 }),
        fc.uint8Array({ maxLength: 64 }),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (argv, env, filter, tty, privatePipes, waits) => {
          const wire = encodeJob({
            program: "/p",
            folder: "/w",
            filter,
            argv,
            env,
            limits: [{ resource: 7, soft: 2n ** 40n, hard: 2n ** 41n }],
            tty,
            privatePipes,
            ...(waits ? { waits } : {}),
          })
          const limit = Buffer.alloc(20)
          limit.writeUInt32LE(7, 0)
          limit.writeBigUInt64LE(2n ** 40n, 4)
          limit.writeBigUInt64LE(2n ** 41n, 12)
          const entries = Object.entries(env).map(([name, value]) => hex(`${name}=${value}`))
          const expected = [
            "/p",
            "/w",
            Buffer.from(filter).toString("hex"),
            argv.length,
            ...argv.map(hex),
            entries.length,
            ...entries,
            1,
            limit.toString("hex"),
            tty ? 1 : 0,
            privatePipes ? 1 : 0,
            waits ? 1 : 0,
            0,
            0,
          ].join("|")
          expect(execFileSync("/usr/bin/perl", ["-e", reader], { input: wire, encoding: "latin1" })).toBe(expected)
        },
      ),
      { numRuns: 25 },
    )
  })

  it.each([
    ["R 5 6 8 9 11", { word: "ready", streams: { input: 5, out: 6, err: 8, toTool: 9, fromTool: 11 } }],
    ["R", { word: "failed", message: 'an unknown status: "R"' }],
    ["S 0", { word: "ended", code: 0, signal: 0 }],
    ["S 768", { word: "ended", code: 3, signal: 0 }],
    ["S 9", { word: "ended", code: 0, signal: 9 }],
    ["S 139", { word: "ended", code: 0, signal: 11 }],
    ["X 2", { word: "unstartable", errno: 2 }],
    ["F folder: 13", { word: "failed", message: "folder: 13" }],
  ])("reads the status %s", (line, status) => {
    expect(parseStatus(line)).toEqual(status)
  })

  it.each(["", "S", "S -1", "S 1e9", "S 1 2", "R ", "anything"])("does not take %j for a status", (line) => {
    expect(parseStatus(line).word).toBe("failed")
  })

  it("knows the bridge's system calls by their numbers on this machine", () => {
    const [prctl, setsid] = bridgeCalls(process.arch)
    const said = execFileSync(
      "/usr/bin/perl",
      [
        "-e",
        `syscall(${prctl}, 4, 0, 0, 0, 0) == 0 or die; print syscall(${prctl}, 3, 0, 0, 0, 0); fork or do { print syscall(${setsid}) == $$ ? "s" : "?"; exit }; wait`,
      ],
      { encoding: "utf8" },
    )
    expect([...said].sort().join("")).toMatch(/^0{1,2}s$/)
  })
})
