import { describe } from "vitest"
import { sdkSuite } from "./sdk-cases.ts"

describe("a driver of kind sdk, with the namespace backend", () => sdkSuite("namespace", () => ""))
