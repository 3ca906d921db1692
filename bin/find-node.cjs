"use strict"
/**
 * Which Node runs the host: one answer for the launcher and for the scripts of a clone.
 *
 * Guarantees: parses on any Node (ES5); asks each candidate for its version and takes none that is too old. The pinned
 * Node is looked for in the package of this very platform, wherever npm laid it: the shared `.bin/node` belongs to
 * whichever platform's package npm linked last, and some npms drop it with the package that does not fit.
 * Does not: look outside this package's own folders, where others might put a program.
 */
var fs = require("fs")
var path = require("path")

/** The oldest Node that runs the host: `engines.node` in package.json. */
function isNewEnough(version) {
  var parts = String(version).replace(/^v/, "").split(".")
  var major = Number(parts[0])
  return major > 24 || (major === 24 && Number(parts[1]) >= 15)
}

/** Every place where npm may have laid the pinned Node of a platform, nearest first. */
function placesOfPinned(home, platform, arch) {
  var name = path.join("node-" + platform + "-" + arch, "bin", "node")
  var places = [
    path.join(home, "node_modules", name),
    path.join(home, "node_modules", "@local", "node-runtime", "node_modules", name),
    path.join(home, "tools", "node-runtime", "node_modules", name),
  ]
  var above = path.dirname(home)
  if (path.basename(above) === "node_modules") places.push(path.join(above, name))
  return places
}

function runs(file) {
  if (!file || !fs.existsSync(file)) return false
  var probe = require("child_process").spawnSync(file, ["--version"], { encoding: "utf8", timeout: 60000 })
  return probe.status === 0 && isNewEnough(probe.stdout.trim())
}

function firstThatRuns(files) {
  for (var i = 0; i < files.length; i++) if (runs(files[i])) return files[i]
  return undefined
}

function pinnedNode(home) {
  return firstThatRuns(placesOfPinned(home, process.platform, process.arch))
}

module.exports = {
  isNewEnough: isNewEnough,
  placesOfPinned: placesOfPinned,
  pinnedNode: pinnedNode,
  runs: runs,
}
