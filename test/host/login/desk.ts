/** A desk for flows whose command ends as a test says; everything else of it is there and does nothing. */
import type { AuthSpec } from "../../../src/manifest/types.ts"
import type { LoginDesk } from "../../../src/host/login/flow.ts"
import type { LoginProgress, Person } from "../../../src/host/person.ts"
import type { HomeCommand, RanInHome } from "../../../src/host/login/run-in-home.ts"
import type { RegisteredDriver } from "../../../src/host/registry/types.ts"

export const driverWith = (auth: AuthSpec): RegisteredDriver =>
  ({ key: "gh@1", contract: { id: "gh", major: 1, auth, egress: [], setup: [] } }) as unknown as RegisteredDriver

export const ranWell: Extract<RanInHome, { ran: true }> = {
  ran: true,
  exit: 0,
  timedOut: false,
  stdout: "",
  stderr: "",
  unreachable: [],
  denied: [],
}

export interface TestDesk {
  readonly desk: LoginDesk
  readonly ran: Omit<HomeCommand, "driver" | "key">[]
  readonly told: LoginProgress[]
}
export const deskWith = (
  answer: (command: Omit<HomeCommand, "driver" | "key">) => RanInHome,
  {
    person = {},
    signal = new AbortController().signal,
    deadlineMs = Date.now() + 60_000,
  }: Partial<LoginDesk> & {
    readonly person?: Person
  } = {},
): TestDesk => {
  const ran: Omit<HomeCommand, "driver" | "key">[] = []
  const told: LoginProgress[] = []
  const desk: LoginDesk = {
    driver: driverWith({ state: { paths: [], env: [] } }),
    key: { tenant: "local", driver: "gh@1 file:/a", workspace: "w", user: "u" },
    signal,
    deadlineMs,
    person,
    tell: (progress) => void told.push(progress),
    run: async (command) => {
      ran.push(command)
      return answer(command)
    },
    lacks: [],
    scopes: { before: [], wanted: [] },
    runOwn: () => Promise.reject(new Error("nothing of its own is run here")),
    ask: () => Promise.reject(new Error("nobody is asked here")),
    connect: () => Promise.reject(new Error("nothing is dialled here")),
    kept: {
      hold: () => undefined,
      get: async () => ({ ok: true, value: undefined }),
      set: async () => ({ ok: true, value: undefined }),
      delete: async () => ({ ok: true, value: false }),
    },
  }
  return { desk, ran, told }
}
