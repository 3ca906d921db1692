import { describe } from "vitest"
import { ownFunctionsSuite } from "./own-functions-cases.ts"

describe("a driver's own functions, with the namespace backend", () => ownFunctionsSuite("namespace", () => ""))
