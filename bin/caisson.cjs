#!/usr/bin/env node
"use strict"
/**
 * The launcher: finds a Node that can run the host, and the code to run.
 *
 * Guarantees: parses on any Node (ES5). Node 24.15 or later runs the command in this process: from `dist`, or in a
 * clone whose sources are newer, from `src`. An older Node starts `$CAISSON_NODE` or the Node in this package's
 * node_modules instead, which the kernel ends with this one, passes signals on and ends as it ended. Without one: exit
 * code 5 and one line.
 */
var fs = require("fs")
var path = require("path")
var nodes = require("./find-node.cjs")

var home = path.dirname(__dirname)
var hostCannotRun = 5

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
      refuse("this installation is broken: " + (error && error.message) + "; " + setUp("install caisson again"))
    }
  )
}

function otherNode() {
  var named = process.env.CAISSON_NODE
  return nodes.runs(named) ? named : nodes.pinnedNode(home)
}

/** In a clone, set-up brings what is missing, the Node included. */
function setUp(otherwise) {
  return fs.existsSync(path.join(home, "scripts", "setup.mjs"))
    ? "set this clone up: cd " + home + " && npm start -- --once"
    : otherwise
}

function refuse(line) {
  process.stderr.write("caisson: " + line + "\n")
  process.exit(hostCannotRun)
}

/** The other Node must not outlive this one: a call whose caller was killed would go on and commit. */
function runElsewhere(node) {
  var setpriv = "/usr/bin/setpriv"
  if (!fs.existsSync(setpriv))
    return refuse(setpriv + " is missing, without which a call would outlive its caller; run: sudo apt-get install util-linux")
  var env = {}
  Object.keys(process.env).forEach(function (name) {
    env[name] = process.env[name]
  })
  env.CAISSON_STARTED_BY = String(process.pid)
  var args = ["--pdeathsig", "KILL", node, __filename].concat(process.argv.slice(2))
  var child = require("child_process").spawn(setpriv, args, { stdio: "inherit", env: env })
  ;["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"].forEach(function (signal) {
    process.on(signal, function () {
      child.kill(signal)
    })
  })
  child.on("error", function (error) {
    refuse("cannot start " + node + ": " + error.message)
  })
  child.on("exit", function (code, signal) {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code)
  })
}

/** Whether the Node that started this one was gone before the kernel knew that this one is to go with it. */
function wasLeftBehind() {
  var by = process.env.CAISSON_STARTED_BY
  delete process.env.CAISSON_STARTED_BY
  return by !== undefined && by !== String(process.ppid)
}

if (nodes.isNewEnough(process.versions.node)) {
  if (wasLeftBehind()) refuse("whoever started this is gone; nothing was run")
  else runHere()
} else {
  var node = otherNode()
  if (node) runElsewhere(node)
  else refuse("needs Node 24.15 or later and found " + process.version + "; " + setUp("install a newer Node") + ", or set CAISSON_NODE to one")
}
