/** The steps that bring a store's tables from one version to the next, for every engine. A step in use is never edited. */
import { askedTable } from "./asked.ts"
import { callsTable } from "./calls.ts"
import { grantsTable } from "./grants.ts"
import { heldTable } from "./held.ts"
import { loginsTable } from "./logins.ts"
import { offersTable } from "./offers.ts"
import { pacesTable } from "./paces.ts"
import { spentTable } from "./spent.ts"
import { tokensTable } from "./tokens.ts"

export const tables: readonly string[] = [
  heldTable,
  offersTable,
  loginsTable,
  pacesTable,
  callsTable,
  tokensTable,
  grantsTable,
  spentTable,
  askedTable,
]
