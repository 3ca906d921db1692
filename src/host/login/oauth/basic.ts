/**
 * `client_secret_basic` (RFC 6749, 2.3.1): id and secret in a header, each written as a form's value.
 *
 * Guarantees: only what a form has to escape is escaped, so that a server which reads the header without undoing that, as
 * many do, reads the usual ids as they are.
 */
import type { ClientAuth } from "oauth4webapi"

const asForm = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1)

export const basicAuth =
  (secret: string): ClientAuth =>
  (_server, { client_id: id }, _body, headers) => {
    headers.set("authorization", `Basic ${Buffer.from(`${asForm(id)}:${asForm(secret)}`).toString("base64")}`)
  }
