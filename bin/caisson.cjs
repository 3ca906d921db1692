#!/usr/bin/env node
"use strict"
/**
 * The launcher: finds a Node that can run the host, and the code to run.
 *
 * Guarantees: parses on any Node (ES5). Node 24.15 or later runs the command in this process: from `dist`, or in a
 * clone whose sources are newer, from `src`. An older Node starts `$CAISSON_NODE` or the Node in this package's
 * node_modules instead, passes signals on and ends as it ended. Without one: exit code 5 and one line.
 */
var fs = require("fs")
var path = require("path")

var home = path.dirname(__dirname)
var hostCannotRun = 5

function isNewEnough(version) {
  var parts = String(version).replace(/^v/, "").split(".")
  var major = Number(parts[0])
  return major > 24 || (major === 24 && Number(parts[1]) >= 15)
}

function modifiedAt(file) {
  try {
    return fs.statSync(file).mtime.getTime()
  } catch (_) {
    return 0
  }
}

function isAnyNewer(folder, than) {
  return fs.readdirSync(folder).some(function (name) {
    var file = path.join(folder, name)
    var stat = fs.statSync(file)
    return stat.mtime.getTime() > than || (stat.isDirectory() && isAnyNewer(file, than))
  })
}

function entry() {
  var built = path.join(home, "dist", "cli", "main.js")
  var sources = path.join(home, "src")
  if (!fs.existsSync(path.join(sources, "cli", "main.ts"))) return built
  var builtAt = modifiedAt(path.join(home, "dist", ".built"))
  return builtAt > 0 && !isAnyNewer(sources, builtAt) ? built : path.join(sources, "cli", "main.ts")
}

function runHere() {
  var url = require("url").pathToFileURL(entry()).href
  require("./load.cjs")(url).then(
    function (module) {
      return module.main(process.argv.slice(2))
    },
    function (error) {
      process.stderr.write("caisson: this installation is broken: " + (error && error.message) + "\n")
      process.exit(hostCannotRun)
    }
  )
}

function otherNode() {
  var candidates = [process.env.CAISSON_NODE, path.join(home, "node_modules", ".bin", "node")]
  for (var i = 0; i < candidates.length; i++) {
    if (!candidates[i] || !fs.existsSync(candidates[i])) continue
    var probe = require("child_process").spawnSync(candidates[i], ["--version"], { encoding: "utf8" })
    if (probe.status === 0 && isNewEnough(probe.stdout.trim())) return candidates[i]
  }
  return undefined
}

function runElsewhere(node) {
  var child = require("child_process").spawn(node, [__filename].concat(process.argv.slice(2)), { stdio: "inherit" })
  ;["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"].forEach(function (signal) {
    process.on(signal, function () {
      child.kill(signal)
    })
  })
  child.on("error", function (error) {
    process.stderr.write("caisson: cannot start " + node + ": " + error.message + "\n")
    process.exit(hostCannotRun)
  })
  child.on("exit", function (code, signal) {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code)
  })
}

if (isNewEnough(process.versions.node)) runHere()
else {
  var node = otherNode()
  if (node) runElsewhere(node)
  else {
    process.stderr.write(
      "caisson: needs Node 24.15 or later and found " + process.version + "; install it, or set CAISSON_NODE to one\n"
    )
    process.exit(hostCannotRun)
  }
}
