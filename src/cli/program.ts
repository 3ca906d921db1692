/**
 * The command tree: names, flags, help. Each command's code is loaded when it runs.
 *
 * Guarantees: only commands that exist are here; an unknown one is refused with the nearest name. Unknown flags, extra
 * arguments and flags without a value are refused, each with the command that tells more.
 */
import { Argument, Command, InvalidArgumentError, Option } from "commander"
import { addAuthoring } from "./authoring-commands.ts"
import type { ApprovalFlags } from "./commands/approvals.ts"
import type { Terminal } from "./terminal.ts"
import { about, commands, exitCodes, options, says } from "./texts.ts"

type Finish = (code: number) => void

const collect = (folder: string, earlier: string[] | undefined): string[] => [...(earlier ?? []), folder]
const secondsOf = (text: string): number => {
  if (!/^[1-9][0-9]{0,5}$/.test(text)) throw new InvalidArgumentError("Write a whole number of seconds.")
  return Number(text)
}
const daysOf = (text: string): string => {
  if (!/^[0-9]{1,6}(\.[0-9]{1,9})?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError("Write how many days, above 0.")
  return text
}
const json = (): Option => new Option("--json", options.json)
const manifests = (): Option => new Option("--manifests <dir>", options.manifests).argParser(collect)
const backend = (): Option => new Option("--backend <name>", options.backend).choices(["namespace", "docker"])

const callFlags = (command: Command): Command =>
  command
    .option("-i, --input <json>", options.input)
    .option("--workspace <dir>", options.workspace, ".")
    .option("--user <id>", options.user)
    .addOption(manifests())
    .addOption(backend())
    .option("--driver <id>", options.driver)
    .option("--context <json>", options.context)

const addCalls = (program: Command, terminal: Terminal, finish: Finish): void => {
  callFlags(program.command("call <tool>").description(commands.call))
    .option("--plan", options.plan)
    .option("--yes", options.yes)
    .option("--observe", options.observe)
    .addOption(new Option("--record <file>", options.record).conflicts("replay"))
    .addOption(new Option("--replay <file>", options.replay))
    .addOption(new Option("--wait [seconds]", options.wait).preset("600").argParser(secondsOf))
    .addOption(json())
    .action(async (tool: string, flags) =>
      finish(await (await import("./commands/call.ts")).run(tool, flags, terminal)),
    )
  callFlags(program.command("why <tool>").description(commands.why))
    .addOption(json())
    .action(async (tool: string, flags) => finish(await (await import("./commands/why.ts")).run(tool, flags, terminal)))
}

/** Options stand before the command: from its first word on, all words are its own. */
const addRun = (program: Command, terminal: Terminal, finish: Finish): void => {
  const several = (flags: string, text: string): Option => new Option(flags, text).argParser(collect)
  program
    .command("run [command...]")
    .description(commands.run)
    .passThroughOptions()
    .addOption(several("--allow <host>", options.allow))
    .addOption(several("--write <glob>", options.write))
    .addOption(several("--read <glob>", options.read))
    .addOption(several("--exec <name>", options.exec))
    .addOption(several("--secret <slug>", options.secret))
    .option("--workspace <dir>", options.workspace, ".")
    .option("--timeout <seconds>", options.timeout, secondsOf)
    .addOption(new Option("--plan", options.plan).conflicts("yes"))
    .option("--yes", options.runYes)
    .option("--no-observe", options.noObserve)
    .addOption(new Option("--record <file>", options.record).conflicts("replay"))
    .addOption(new Option("--replay <file>", options.replay))
    .addOption(backend())
    .addOption(new Option("--json", options.runJson))
    .action(async (command: string[], flags) =>
      finish(await (await import("./commands/run.ts")).run(command, flags, terminal)),
    )
}

const addApprovals = (program: Command, terminal: Terminal, finish: Finish): void => {
  const flagged = (command: Command): Command => command.addOption(manifests()).addOption(backend()).addOption(json())
  const approvals = flagged(program.command("approvals").description(commands.approvals)).action(async (flags) =>
    finish(await (await import("./commands/approvals.ts")).list(flags, terminal)),
  )
  // Flags stand before or after the word.
  const own = (command: Command): ApprovalFlags => ({
    ...approvals.opts<ApprovalFlags>(),
    ...command.opts<ApprovalFlags>(),
  })
  flagged(approvals.command("show <id>").description(commands.approvalsShow)).action(
    async (id: string, _flags: unknown, command: Command) =>
      finish(await (await import("./commands/approvals.ts")).show(id, own(command), terminal)),
  )
  for (const [answer, description] of [
    ["approve", commands.approvalsApprove],
    ["deny", commands.approvalsDeny],
  ] as const)
    flagged(approvals.command(`${answer} <id>`).description(description))
      .option("--reason <text>", options.reason)
      .action(async (id: string, _flags: unknown, command: Command) =>
        finish(await (await import("./commands/approvals.ts")).decide(id, answer, own(command), terminal)),
      )
}

const addSecrets = (program: Command, terminal: Terminal, finish: Finish): void => {
  const secrets = program.command("secrets").description(commands.secrets)
  const scoped = (name: string, description: string): Command =>
    secrets
      .command(name)
      .description(description)
      .addOption(manifests())
      .option("--user <id>", options.secretUser)
      .addOption(new Option("--shared", options.shared).conflicts("user"))
      .option("--workspace <dir>", options.onlyWorkspace)
      .option("--driver <id>", options.onlyDriver)
  scoped("set <slug>", commands.secretsSet).action(async (slug: string, flags) =>
    finish(await (await import("./commands/secrets.ts")).set(slug, flags, terminal)),
  )
  scoped("rm <slug>", commands.secretsRm).action(async (slug: string, flags) =>
    finish(await (await import("./commands/secrets.ts")).remove(slug, flags, terminal)),
  )
  secrets
    .command("list")
    .description(commands.secretsList)
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/secrets.ts")).list(flags, terminal)))
  secrets
    .command("rotate")
    .description(commands.secretsRotate)
    .option("--old-key <file>", options.oldKey)
    .action(async (flags) => finish(await (await import("./commands/secrets.ts")).rotate(flags, terminal)))
}

const addLogins = (program: Command, terminal: Terminal, finish: Finish): void => {
  const owned = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .option("--workspace <dir>", options.workspace, ".")
      .option("--user <id>", options.user)
      .addOption(manifests())
      .addOption(backend())
      .addOption(json())
  owned("login <driver>", commands.login)
    .option("--headless", options.headless)
    .option("--wait", options.loginWait)
    .action(async (driver: string, flags) =>
      finish(await (await import("./commands/login.ts")).login(driver, flags, terminal)),
    )
  owned("logout <driver>", commands.logout).action(async (driver: string, flags) =>
    finish(await (await import("./commands/login.ts")).logout(driver, flags, terminal)),
  )
  owned("auth", commands.auth).action(async (flags) =>
    finish(await (await import("./commands/login.ts")).auth(flags, terminal)),
  )
}

const addDaemon = (program: Command, version: string, terminal: Terminal, finish: Finish): void => {
  program
    .command("serve")
    .description(commands.serve)
    .option("--listen <address>", options.listenOn)
    .option("--tell-token", options.tellToken)
    .addOption(manifests())
    .addOption(backend())
    .action(async (flags) => finish(await (await import("./commands/serving/serve.ts")).run(flags, version, terminal)))
  program
    .command("mcp")
    .description(commands.mcp)
    .option("--workspace <dir>", options.workspace, ".")
    .option("--user <id>", options.user)
    .addOption(manifests())
    .addOption(backend())
    .addOption(new Option("--tag <name>", options.tag).argParser(collect))
    .option("--find", options.find)
    .action(async (flags) => finish(await (await import("./commands/serving/mcp.ts")).run(flags, version, terminal)))
  const tokens = program.command("tokens").description(commands.tokens)
  tokens
    .command("create")
    .description(commands.tokensCreate)
    .option("--user <id>", options.tokenUser)
    .option("--tenant <id>", options.tenant)
    .option("--label <text>", options.label)
    .option("--person", options.person)
    .addOption(new Option("--workspace <dir>", options.tokenWorkspace).argParser(collect))
    .addOption(new Option("--any-workspace", options.anyWorkspace).conflicts("workspace"))
    .addOption(new Option("--role <name>", options.role).argParser(collect))
    .option("--days <n>", options.days, daysOf)
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/tokens.ts")).create(flags, terminal)))
  tokens
    .command("list")
    .description(commands.tokensList)
    .option("--tenant <id>", options.tenant)
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/tokens.ts")).list(flags, terminal)))
  tokens
    .command("revoke <id>")
    .description(commands.tokensRevoke)
    .option("--tenant <id>", options.tenant)
    .action(async (id: string, flags) =>
      finish(await (await import("./commands/tokens.ts")).revoke(id, flags, terminal)),
    )
}

const addQuestions = (program: Command, terminal: Terminal, finish: Finish): void => {
  const questions = program
    .command("questions")
    .description(commands.questions)
    .addOption(manifests())
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/questions.ts")).list(flags, terminal)))
  questions
    .command("answer <id>")
    .description(commands.questionsAnswer)
    .requiredOption("-i, --input <json>", options.answer)
    .action(async (id: string, flags: { input: string }) =>
      finish(await (await import("./commands/questions.ts")).answer(id, { ...questions.opts(), ...flags }, terminal)),
    )
}

const addGrants = (program: Command, terminal: Terminal, finish: Finish): void => {
  const grants = program.command("grants").description(commands.grants)
  grants
    .command("create")
    .description(commands.grantsCreate)
    .requiredOption("--tool <tool>", options.grantTool)
    .option("--user <id>", options.grantUser)
    .option("--workspace <dir>", options.grantWorkspace)
    .addOption(new Option("--any-workspace", options.grantAny).conflicts("workspace"))
    .option("--uses <n>", options.uses)
    .addOption(new Option("--until <moment>", options.until).conflicts("days"))
    .option("--days <n>", options.grantDays, daysOf)
    .option("--reason <text>", options.reason)
    .addOption(manifests())
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/grants.ts")).create(flags, terminal)))
  grants
    .command("list")
    .description(commands.grantsList)
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/grants.ts")).list(flags, terminal)))
  grants
    .command("revoke <id>")
    .description(commands.grantsRevoke)
    .action(async (id: string) => finish(await (await import("./commands/grants.ts")).revoke(id, terminal)))
}

const addCatalogue = (program: Command, terminal: Terminal, finish: Finish): void => {
  const listing = (name: string, description: string): Command =>
    program.command(name).description(description).addOption(manifests()).addOption(backend()).addOption(json())
  listing("tools [tool]", commands.tools).action(async (tool: string | undefined, flags) =>
    finish(await (await import("./commands/tools.ts")).run(tool, flags, terminal)),
  )
  listing("drivers [driver]", commands.drivers).action(async (driver: string | undefined, flags) =>
    finish(await (await import("./commands/drivers.ts")).run(driver, flags, terminal)),
  )
  listing("install <driver>", commands.install).action(async (driver: string, flags) =>
    finish(await (await import("./commands/install.ts")).run(driver, flags, terminal)),
  )
  listing("review <driver>", commands.review)
    .option("--accept <digest>", options.accept)
    .option("--html <file>", options.reviewHtml)
    .action(async (driver: string, flags) =>
      finish(await (await import("./commands/review.ts")).run(driver, flags, terminal)),
    )
  listing("prune", commands.prune).action(async (flags) =>
    finish(await (await import("./commands/prune.ts")).run(flags, terminal)),
  )
  listing("conform [name...]", commands.conform)
    .option("--all", options.all)
    .option("--outside", options.outside)
    .option("--junit <file>", options.junit)
    .addOption(new Option("--tap", options.tap).conflicts("json"))
    .action(async (names: string[], flags) =>
      finish(await (await import("./commands/trying/conform.ts")).run(names, flags, terminal)),
    )
  program
    .command("validate <path...>")
    .description(commands.validate)
    .option("--strict", options.strict)
    .addOption(json())
    .action(async (paths: string[], flags) =>
      finish(await (await import("./commands/validate.ts")).run(paths, flags, terminal)),
    )
  program
    .command("import <format> <path...>")
    .description(commands.import)
    .option("--to <dir>", options.importTo, "imported")
    .addOption(json())
    .action(async (format: string, paths: string[], flags) =>
      finish(await (await import("./commands/importing/import.ts")).run(format, paths, flags, terminal)),
    )
}

const addReceipts = (program: Command, terminal: Terminal, finish: Finish): void => {
  const filtered = (command: Command): Command =>
    command
      .option("--call <id>", options.call)
      .option("--tool <id>", options.ofTool)
      .option("--user <id>", options.ofUser)
      .option("--verdict <code>", options.verdict)
      .option("--since <time>", options.since)
      .option("--until <time>", options.entriesUntil)
      .option("--wrote <path>", options.wrote)
      .option("--host <host>", options.reachedHost)
      .option("--denied", options.denied)
  const receipts = filtered(program.command("receipts").description(commands.receipts))
    .option("--limit <count>", options.limit)
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/evidence/receipts.ts")).run(flags, terminal)))
  // Flags stand before or after the word.
  filtered(receipts.command("export").description(commands.receiptsExport)).action(
    async (_flags: unknown, command: Command) =>
      finish(
        await (await import("./commands/evidence/receipts.ts")).exported(
          { ...receipts.opts(), ...command.opts() },
          terminal,
        ),
      ),
  )
}

const addEvidence = (program: Command, terminal: Terminal, finish: Finish): void => {
  program
    .command("doctor")
    .description(commands.doctor)
    .addOption(backend())
    .addOption(json())
    .action(async (flags) => finish(await (await import("./commands/doctor.ts")).run(flags, terminal)))
  addReceipts(program, terminal, finish)
  program
    .command("verify [dir]")
    .description(commands.verify)
    .option("--key <file>", options.key)
    .option("--head <hash>", options.head)
    .addOption(json())
    .action(async (dir: string | undefined, flags) =>
      finish(await (await import("./commands/evidence/verify.ts")).run(dir, flags, terminal)),
    )
  program
    .command("egress-proxy")
    .description(commands.egressProxy)
    .requiredOption("--policy <file>", options.policy)
    .requiredOption("--listen <address>", options.listen)
    .action(async (flags) => finish(await (await import("./commands/serving/egress-proxy.ts")).run(flags, terminal)))
}

const addCompletion = (program: Command, version: string, terminal: Terminal, finish: Finish): void => {
  program
    .command("completion")
    .description(commands.completion)
    .addArgument(new Argument("<shell>", "what for").choices(["bash", "zsh", "fish", "man"]))
    .action(async (shell: "bash" | "zsh" | "fish" | "man") =>
      finish((await import("./commands/completion.ts")).run(shell, program, version, terminal)),
    )
}

/** As it is typed: `caisson grants create`. */
const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`

/** What follows a refusal: how the command is used, and where more is told. */
const usageOf = (command: Command): string => {
  const name = nameOf(command)
  const takesTool = command.registeredArguments.some((argument) => argument.name() === "tool")
  const more = `\`${name} --help\` tells more`
  return `use  ${name} ${command.usage()}; ${takesTool ? `${says.listsTools}, ` : ""}${more}`
}

export const createProgram = (version: string, terminal: Terminal, finish: Finish): Command => {
  const program = new Command("caisson")
    .description(about)
    .version(version, "-V, --version", "the version of caisson")
    .helpOption("-h, --help", "this help")
    .addHelpText("after", `\n${exitCodes}`)
    .showSuggestionAfterError(true)
    .showHelpAfterError(says.moreHelp)
    .allowExcessArguments(false)
    .enablePositionalOptions()
    .configureOutput({ outputError: (text, write) => write(`caisson: ${text.replace(/^error: /, "")}`) })
    .exitOverride()
  addCalls(program, terminal, finish)
  addRun(program, terminal, finish)
  addApprovals(program, terminal, finish)
  addSecrets(program, terminal, finish)
  addLogins(program, terminal, finish)
  addDaemon(program, version, terminal, finish)
  addQuestions(program, terminal, finish)
  addGrants(program, terminal, finish)
  addCatalogue(program, terminal, finish)
  addEvidence(program, terminal, finish)
  addCompletion(program, version, terminal, finish)
  addAuthoring(program, terminal, finish)
  for (const command of program.commands.flatMap((each) => [each, ...each.commands]))
    command
      .version(version, "-V, --version", "the version of caisson")
      .helpOption("-h, --help", "this help")
      .allowExcessArguments(false)
      .showHelpAfterError(usageOf(command))
      .exitOverride()
  return program
}
