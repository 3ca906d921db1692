/** The protocol's own conformance suite, of the one version whose verdicts count here. */
import { type Fetched, fetchFromNpm } from "../support/fetched.ts"

export const fetchSuite = (): Promise<Fetched> =>
  fetchFromNpm("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js")
