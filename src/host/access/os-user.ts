/**
 * Who calls, where the caller does not say: the OS user.
 *
 * Guarantees: always a user id. A user without a name in the password file (a container's `--user 1234`), or with a
 * name that is no user id, goes by its number.
 */
import { userInfo } from "node:os"

const USER = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/

export const isUserId = (text: string): boolean => USER.test(text)

const nameOf = (): string | undefined => {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

export const osUser = (name: string | undefined = nameOf()): string =>
  name !== undefined && isUserId(name) ? name : `uid-${process.getuid?.() ?? "unknown"}`
