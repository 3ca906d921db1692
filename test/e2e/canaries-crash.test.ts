/** A host that crashes with a secret in its memory, on a machine that keeps core dumps. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const manifests = join(import.meta.dirname, "../../fixtures/secrets")

it.each(["SIGABRT", "SIGSEGV", "SIGQUIT"] as const)(
  "a host that ends by %s leaves no core dump, with a handler or in a file, whatever limit it was started under",
  async (signal) => {
    const folder = openFolder()
    try {
      const [data, work, crashed] = ["data", "work", "crashed"].map((name) => join(folder, name)) as [
        string,
        string,
        string,
      ]
      for (const each of [work, crashed]) mkdirSync(each)
      const script = join(import.meta.dirname, "canary-holder.ts")
      const child = spawn(
        "sh",
        ["-c", 'ulimit -c unlimited && exec "$@"', "sh", process.execPath, script, data, work, manifests],
        { cwd: crashed, env: { ...process.env, CANARY: "tok_live-5b1f0c2e9d" }, stdio: ["ignore", "pipe", "inherit"] },
      )
      const [told] = (await once(child.stdout, "data")) as [Buffer]
      expect(JSON.parse(told.toString())).toMatchObject({ ok: true })
      // One byte, not none: a core handler that is a pipe is not held to none.
      expect(readFileSync(`/proc/${child.pid}/limits`, "utf8")).toMatch(/^Max core file size +1 /m)
      child.kill(signal)
      expect(await once(child, "close")).toEqual([null, signal])
      expect(readdirSync(crashed)).toEqual([])
    } finally {
      removeFolder(folder)
    }
  },
)
