import { describe } from "vitest"
import { codeSuite } from "./code-cases.ts"

describe("a driver that is composed of code, with the namespace backend", () => codeSuite("namespace", () => ""))
