/**
 * What a person types to get a driver's program, from its install methods.
 *
 * Guarantees: a command is only suggested when its package name is a plain word, so that pasting it runs nothing else.
 * Does not: install anything.
 */
import { cliOf } from "../../../manifest/kinds/body.ts"
import type { DriverContract, InstallMethod } from "../../../manifest/types.ts"

const commands: Readonly<Record<string, (name: string) => string>> = {
  apt: (name) => `apt-get install ${name}`,
  dnf: (name) => `dnf install ${name}`,
  pacman: (name) => `pacman -S ${name}`,
  npm: (name) => `npm install --global ${name}`,
  pip: (name) => `pip install ${name}`,
  cargo: (name) => `cargo install ${name}`,
  go: (name) => `go install ${name}`,
  brew: (name) => `brew install ${name}`,
}
const plainPackage = /^[A-Za-z0-9@][A-Za-z0-9@/._+:=-]{0,127}$/

const commandOf = (each: InstallMethod): string | undefined => {
  if (!each.usable || !("package" in each) || !plainPackage.test(each.package)) return undefined
  return Object.hasOwn(commands, each.method) ? commands[each.method]?.(each.package) : undefined
}

/** apt where it is offered, since this host runs on Debian and Ubuntu; else the first method in the author's order. */
export const installFix = (driver: DriverContract): string => {
  const [command] = [...driver.install.filter((each) => each.method === "apt"), ...driver.install].flatMap(
    (each) => commandOf(each) ?? [],
  )
  if (command !== undefined) return `run \`${command}\``
  const vendored = driver.install.some((each) => each.method === "vendored")
  const bin = cliOf(driver)?.bin ?? driver.id
  return vendored
    ? `put \`${bin}\` where the driver's \`vendored\` path says, executable`
    : `install \`${bin}\` into /usr/local/bin or by your package manager`
}
