"use strict"
/**
 * Kept apart from the launcher because very old Nodes cannot even parse `import()`.
 *
 * Guarantees: compiled code is kept between starts only inside a data folder that is this user's own and closed to
 * everybody else, because whoever can write it decides what runs here; without such a folder nothing is kept.
 */
const fs = require("node:fs")
const os = require("node:os")
const path = require("node:path")

function keepCompiled() {
  try {
    const data = fs.realpathSync.native(process.env.CAISSON_DATA || path.join(os.homedir(), ".caisson"))
    const found = fs.lstatSync(data)
    if (!found.isDirectory() || found.uid !== process.getuid() || (found.mode & 0o077) !== 0) return
    const folder = path.join(data, "compiled")
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const own = fs.lstatSync(folder)
    if (!own.isDirectory() || own.uid !== found.uid || (own.mode & 0o022) !== 0) return
    require("node:module").enableCompileCache(folder)
  } catch (_) {
    // Compiling again costs some milliseconds, never a call.
  }
}

module.exports = function load(url) {
  keepCompiled()
  return import(url)
}
