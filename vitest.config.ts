import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

/** How many times slower than usual this machine may be: an emulated one sets it (scripts/vm). */
const patience = Math.max(1, Number(process.env["CAISSON_TEST_PATIENCE"]) || 1)
const shared = { pool: "forks" as const, testTimeout: 60_000 * patience, hookTimeout: 120_000 * patience }

/** Starts the command dozens of times, which takes long for what it is. */
const slow = "test/cli/launcher.test.ts"

/** `unit`: quick and without system set-up. `sealed`: real sandboxes, servers and crashes, one file at a time. */
export default defineConfig({
  test: {
    // The default leaves one core idle, which on two cores is half of them; sealed tests run one at a time all the same.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      { test: { ...shared, name: "unit", include: ["test/manifest/**/*.test.ts", "test/egress-proxy/**/*.test.ts", "test/host/**/*.test.ts", "test/cli/**/*.test.ts", "test/define/**/*.test.ts", "test/unit/**/*.test.ts"], exclude: [slow] } },
      { test: { ...shared, name: "sealed", include: [slow, "test/sandbox/**/*.test.ts", "test/escape/**/*.test.ts", "test/chaos/**/*.test.ts", "test/e2e/**/*.test.ts", "test/corpus/**/*.test.ts"], fileParallelism: false } },
    ],
  },
})
