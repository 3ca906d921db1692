/**
 * Says which Node is needed, before anything that an older one cannot run.
 *
 * Guarantees: each entry point of the package imports this first, so that on an older Node importing it fails with
 * these words. Parses on Node 18 and later, and imports nothing.
 */

/** As in `engines` of package.json. */
export const neededNode = [24, 15] as const

export const isNewEnough = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > neededNode[0] || (major === neededNode[0] && minor >= neededNode[1])
}

if (!isNewEnough(process.versions.node))
  throw new Error(
    `Caisson needs Node ${neededNode.join(".")} or later, and this is Node ${process.versions.node} (${process.execPath}); ` +
      "run your program with a newer one, such as the `node_modules/.bin/node` that caisson's set-up installs",
  )
