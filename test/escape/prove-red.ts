/**
 * `node test/escape/prove-red.ts [PART OF A CONTROL'S NAME]`: which cases turn red when a control is off, as a table.
 *
 * Run by hand; it takes some minutes. At the end it names the cases that no control alone turns red: behind those stand
 * several controls at once, or the kernel itself. Exits with 1 if a case stays green that should turn red.
 */
import { applies, escapeCases } from "./cases/index.ts"
import { controls } from "./controls.ts"
import { casesOf, provable, runWithout } from "./controls-off.ts"

const part = process.argv[2] ?? ""
const seenRed = new Set<string>()
let missing = 0
for (const control of controls.filter(({ name }) => name.includes(part))) {
  if (!provable(control)) {
    console.log(`\nwithout ${control.name}: proven as ${control.as === "root" ? "root" : "an ordinary user"} only`)
    continue
  }
  console.log(`\nwithout ${control.name}:`)
  const verdicts = new Map((await runWithout(control)).map((verdict) => [verdict.name, verdict]))
  for (const name of casesOf(control)) {
    const breaches = verdicts.get(name)?.breaches ?? []
    if (breaches.length > 0) seenRed.add(name)
    else missing += 1
    console.log(
      `  ${breaches.length > 0 ? "red  " : "GREEN"}  ${name}${breaches[0] === undefined ? "" : `\n           ${breaches[0].split("\n")[0]?.slice(0, 140)}`}`,
    )
  }
}
if (part === "") {
  const others = escapeCases.filter((escape) => applies(escape) && !seenRed.has(escape.name))
  console.log(`\n${seenRed.size} cases seen red; ${others.length} held by more than one control:`)
  for (const { name } of others) console.log(`  ${name}`)
}
process.exit(missing > 0 ? 1 : 0)
