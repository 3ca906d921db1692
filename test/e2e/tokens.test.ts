/** Tokens that a program gets by itself, with the namespace backend. */
import { describe } from "vitest"
import { tokenSuite } from "./token-cases.ts"

describe("a program's own OAuth, with the namespace backend", () => tokenSuite("namespace", () => ""))
