import { describe } from "vitest"
import { amplifierSuite, hookSuite } from "./amplifier-cases.ts"

describe("tools of Amplifier's modules, with the namespace backend", () => amplifierSuite("namespace", () => ""))
describe("hooks around them, with the namespace backend", () => hookSuite("namespace", () => ""))
