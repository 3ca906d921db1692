import { expect, it } from "vitest"
import { controls } from "../escape/controls.ts"
import { brokenEdits, casesOf } from "../escape/controls-off.ts"
import { loginControls } from "../red/login-controls.ts"
import { unnamed } from "../red/turned-red.ts"

it("every control of logins is where its table says, and so are the tests that it turns red", () => {
  expect(loginControls.flatMap(brokenEdits)).toEqual([])
  expect(loginControls.flatMap((control) => unnamed(control).map((part) => `${control.name}: ${part}`))).toEqual([])
  expect(new Set(loginControls.map(({ name }) => name)).size).toBe(loginControls.length)
})

it("each control of the sandbox that can be taken out is where it is said to be, and its cases are there", () => {
  expect(controls.flatMap(brokenEdits)).toEqual([])
  for (const control of controls) expect(() => casesOf(control), control.name).not.toThrow()
})
