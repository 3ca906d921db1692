/**
 * What both backends came to, side by side: equal, different for a reason that is written down, or different.
 *
 * Guarantees: a difference that is not in `known` fails the test that compares; one in `known` that does not occur
 * fails too, so that the list stays true.
 */
import { expect } from "vitest"

/** Differences that are meant, by the case's name, each with its reason. */
export type KnownDifferences = Readonly<Record<string, string>>

export interface ParityTable {
  /** Compares and records. */
  agree(name: string, namespace: unknown, docker: unknown, told?: string): void
  print(): void
}

export const parityTable = (title: string, known: KnownDifferences = {}): ParityTable => {
  const rows: string[] = []
  const count = { same: 0, known: 0, differs: 0 }
  return {
    agree(name, namespace, docker, told = "") {
      const same = JSON.stringify(namespace) === JSON.stringify(docker)
      const reason = known[name]
      const word = same ? "same" : reason === undefined ? "differs" : "known"
      count[word] += 1
      const label = word === "differs" ? "DIFFERS" : word
      rows.push(`  ${label.padEnd(8)}${name.slice(0, 84).padEnd(86)}${reason ?? told}`)
      if (reason === undefined) expect.soft(docker).toEqual(namespace)
      else expect.soft(same, `${name} is listed as different (${reason}) and is the same`).toBe(false)
    },
    print() {
      const { same, known: meant, differs } = count
      const head = `parity of namespace and docker, ${title}: ${rows.length} cases, ${same} same, ${meant} known, ${differs} DIFFER`
      process.stderr.write(`\n${[head, ...rows].join("\n")}\n`)
    },
  }
}
