import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

/** How many times slower than usual this machine may be: an emulated one sets it (scripts/vm). */
const patience = Math.max(1, Number(process.env["CAISSON_TEST_PATIENCE"]) || 1)
/** Long enough that a busy machine is slow, and not broken: what starts hosts, commands and sandboxes waits for its turn. */
const shared = { pool: "forks" as const, testTimeout: 180_000 * patience, hookTimeout: 240_000 * patience }

/** Starts the command dozens of times, which takes long for what it is. */
const slow = "test/cli/launcher.test.ts"

/**
 * These fill a disk or what the kernel counts by user, load the machine with hundreds of calls, or end engines and
 * launchers under time, look for mounts in the whole machine, or are timed by a suite that is not ours: beside another file neither would say anything of itself.
 */
const alone = [
  "test/chaos/full-disk.test.ts",
  "test/e2e/daemon-health.test.ts",
  "test/escape/escape.test.ts",
  "test/chaos/full-store.test.ts",
  "test/e2e/held-full-disk.test.ts",
  "test/e2e/host-full-disk.test.ts",
  "test/e2e/mcp-conformance.test.ts",
  "test/e2e/mcp-server-conformance.test.ts",
  "test/sandbox/docker/container/pool.test.ts",
  "test/sandbox/namespace/users.test.ts",
]

/** What attacks, and what is killed: one failure of such a test is a failure. */
const strict = ["test/escape/**/*.test.ts", "test/chaos/**/*.test.ts"]

const sealed = [slow, "test/sandbox/**/*.test.ts", "test/e2e/**/*.test.ts", "test/corpus/**/*.test.ts"]

/**
 * `unit`: quick and without system set-up. `sealed`: real sandboxes, servers and crashes, two files at a time; what a file
 * counts (processes, mounts, containers, layers) is its own, never the machine's; one that fails is tried once more, and the run's
 * end names each that passed only then. `strict`: the same without a second attempt. `alone`: those that cannot, one at a time.
 */
export default defineConfig({
  test: {
    // The default leaves one core idle, which on two cores is half of them.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: [
            "test/manifest/**/*.test.ts",
            "test/egress-proxy/**/*.test.ts",
            "test/host/**/*.test.ts",
            "test/cli/**/*.test.ts",
            "test/daemon/**/*.test.ts",
            "test/mcp-server/**/*.test.ts",
            "test/define/**/*.test.ts",
            "test/unit/**/*.test.ts",
          ],
          exclude: [slow],
        },
      },
      {
        test: {
          ...shared,
          name: "sealed",
          include: sealed,
          exclude: alone,
          retry: 1,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: "strict",
          include: strict,
          exclude: alone,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...shared, name: "alone", include: alone, fileParallelism: false, sequence: { groupOrder: 2 } } },
    ],
  },
})
