import { describe } from "vitest"
import { fiveSuite } from "./five-cases.ts"

describe("one contract of five kinds of driver, with the namespace backend", () => fiveSuite("namespace", () => ""))
