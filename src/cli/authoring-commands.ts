/** The commands of those who write tools and drivers, for the command tree of `program.ts`. */
import { type Command, Option } from "commander"
import { inputTypes, scaffoldKinds } from "../authoring/scaffold/answers.ts"
import type { Terminal } from "./terminal.ts"
import { commands, options } from "./texts.ts"

type Finish = (code: number) => void

const collect = (text: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), text]
const many = (flags: string, description: string): Option => new Option(flags, description).argParser(collect)

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
}
