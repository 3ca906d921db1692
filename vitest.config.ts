import { defineConfig } from "vitest/config"

const shared = { pool: "forks" as const, testTimeout: 60_000, hookTimeout: 120_000 }

/** `unit`: quick and without system set-up. `sealed`: real sandboxes, servers and crashes, one file at a time. */
export default defineConfig({
  test: {
    projects: [
      { test: { ...shared, name: "unit", include: ["test/manifest/**/*.test.ts", "test/egress-proxy/**/*.test.ts", "test/host/**/*.test.ts", "test/cli/**/*.test.ts", "test/unit/**/*.test.ts"] } },
      { test: { ...shared, name: "sealed", include: ["test/sandbox/**/*.test.ts", "test/escape/**/*.test.ts", "test/chaos/**/*.test.ts", "test/e2e/**/*.test.ts", "test/corpus/**/*.test.ts"], fileParallelism: false } },
    ],
  },
})
