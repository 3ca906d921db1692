/** What commands hear from the network, kept and answered again. */
import { replaySuite } from "./replay-cases.ts"

replaySuite("namespace")
