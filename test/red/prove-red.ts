/**
 * `node test/red/prove-red.ts [PART OF A CONTROL'S NAME]`: the tests that turn red where a control of logins is taken out.
 * Some minutes. Exits with 1 where one stays green.
 */
import { loginControls } from "./login-controls.ts"
import { stillGreen } from "./turned-red.ts"

const part = process.argv[2] ?? ""
let missing = 0
for (const control of loginControls.filter(({ name }) => name.includes(part))) {
  const green = await stillGreen(control)
  missing += green.length
  for (const name of control.reddens)
    console.log(`${green.includes(name) ? "GREEN" : "red  "}  without ${control.name}: ${name}`)
}
console.log(`${missing} stayed green`)
process.exit(missing > 0 ? 1 : 0)
