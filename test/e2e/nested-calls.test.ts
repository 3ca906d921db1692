import { describe } from "vitest"
import { nestedSuite } from "./nested-cases.ts"

describe("calls within calls, with the namespace backend", () => nestedSuite("namespace", () => ""))
