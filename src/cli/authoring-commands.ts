/** The commands of those who write tools and drivers, for the command tree of `program.ts`. */
import { type Command, InvalidArgumentError, Option } from "commander"
import { inputTypes, scaffoldKinds } from "../authoring/scaffold/answers.ts"
import type { Terminal } from "./terminal.ts"
import { commands, options } from "./texts.ts"

type Finish = (code: number) => void

const collect = (text: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), text]
const many = (flags: string, description: string): Option => new Option(flags, description).argParser(collect)

const runsOf = (text: string): number => {
  if (!/^(?:[1-9]|1[0-9]|20)$/.test(text)) throw new InvalidArgumentError("Write a whole number from 1 to 20.")
  return Number(text)
}

export const addAuthoring = (program: Command, terminal: Terminal, finish: Finish): void => {
  program
    .command("init [command...]")
    .description(commands.init)
    .usage("[options] [-- COMMAND…]")
    .option("--out <dir>", options.initOut)
    .addOption(new Option("--kind <kind>", options.initKind).choices(scaffoldKinds))
    .option("--tool <id>", options.initTool)
    .option("--driver <id>", options.initDriver)
    .option("--description <text>", options.initDescription)
    .addOption(many("--input <name:type>", `${options.initInput} (${inputTypes.join(", ")})`))
    .addOption(many("--write <glob>", options.initWrite))
    .addOption(many("--allow <host>", options.initAllow))
    .addOption(many("--exec <name>", options.initExec))
    .addOption(new Option("--output <format>", options.initOutput).choices(["text", "json"]))
    .option("--url <address>", options.initUrl)
    .addOption(new Option("--method <name>", options.initMethod).choices(["GET", "POST", "PUT", "PATCH", "DELETE"]))
    .addOption(new Option("--language <name>", options.initLanguage).choices(["node", "python"]))
    .option("--package <name>", options.initPackage)
    .option("--server-tool <name>", options.initServerTool)
    .addOption(new Option("--json", options.json))
    .action(async (command: string[], flags) =>
      finish(await (await import("./commands/authoring/init.ts")).run(command, flags, terminal)),
    )
  program
    .command("learn [command...]")
    .description(commands.learn)
    .usage("[options] [-- COMMAND…]")
    .option("--tool <id>", options.learnTool)
    .option("--as <id>", options.learnAs)
    .option("--driver <id>", options.learnDriver)
    .option("--description <text>", options.initDescription)
    .addOption(many("-i, --input <json>", options.learnInput))
    .addOption(new Option("--runs <n>", options.learnRuns).argParser(runsOf).default(2, "2"))
    .addOption(many("--allow <host>", options.learnAllow))
    .addOption(many("--exec <name>", options.learnExec))
    .option("--workspace <dir>", options.workspace, ".")
    .option("--out <dir>", options.learnOut)
    .addOption(many("--manifests <dir>", options.manifests))
    .addOption(new Option("--backend <name>", options.backend).choices(["namespace", "docker"]))
    .addOption(new Option("--json", options.json))
    .action(async (command: string[], flags) =>
      finish(await (await import("./commands/authoring/learn.ts")).run(command, flags, terminal)),
    )
}
