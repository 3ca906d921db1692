import { expect, it } from "vitest"
import { brokenEdits } from "../escape/controls-off.ts"
import { loginControls } from "../red/login-controls.ts"
import { unnamed } from "../red/turned-red.ts"

it("every control of logins is where its table says, and so are the tests that it turns red", () => {
  expect(loginControls.flatMap(brokenEdits)).toEqual([])
  expect(loginControls.flatMap((control) => unnamed(control).map((part) => `${control.name}: ${part}`))).toEqual([])
  expect(new Set(loginControls.map(({ name }) => name)).size).toBe(loginControls.length)
})
