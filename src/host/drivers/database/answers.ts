/** What every database's driver says alike: refusals, limits, and which account a call is asked as. Pure but for the secret. */
import type { DatabaseCall } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import type { Answer, Desk, KindCall } from "../kind.ts"
import { maxRows } from "./limits.ts"
import { type Account, accountOf } from "./account.ts"

export const refusal = (message: string, hint: string): Failure => ({
  ok: false,
  code: "policy_violation",
  message,
  hint,
  undone: true,
  details: {},
})

export const tooMuch: Failure = {
  ok: false,
  code: "limit_exceeded",
  message: "the database answered with more than may be kept",
  hint: "ask for fewer rows",
  details: { limit: "output" },
}

export const tooManyRows = (isUndone: boolean): Failure => ({
  ok: false,
  code: "limit_exceeded",
  message: `the statement has more than ${maxRows} rows`,
  hint: "ask for fewer rows",
  ...(isUndone ? { undone: true as const } : {}),
  details: { limit: "rows" },
})

export const noStatement = (field: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message: `\`${field}\` is no statement`,
  details: { field },
})

export const accountFor = async (
  { driver }: KindCall,
  { host }: DatabaseCall,
  desk: Desk,
): Promise<Answer<Account>> => {
  const [variable] = driver.contract.auth?.state.env ?? []
  const secret = variable === undefined ? undefined : await desk.secret(variable, host)
  const account = secret === undefined ? undefined : accountOf(secret)
  if (account !== undefined) return { ok: true, value: account }
  return {
    ok: false,
    code: "auth_required",
    message: `${driver.key} needs an account of the database: a secret with \`user\` and \`password\``,
    hint: 'set it as JSON: `{"user": "reader", "password": "…"}`',
    undone: true,
    details: { driver: driver.key, env: variable === undefined ? [] : [variable] },
  }
}
