import { ConfigError } from "../config/config-error.ts";
import { nearest } from "../encoding/nearest.ts";
import { readVersion } from "../config/version.ts";
import {
  accountsCreate,
  accountsDisable,
  accountsEnable,
  accountsList,
  accountsLimit,
  accountsResetPassword,
} from "./accounts-commands.ts";
import { parseArguments } from "./arguments.ts";
import { UsageError, type CliContext, type Command } from "./command.ts";
import { backup } from "./backup-command.ts";
import { configCheck } from "./config-command.ts";
import { EXIT } from "./exit-code.ts";
import { formatHelp, formatOverview } from "./help.ts";
import { keysCreate, keysList, keysRevoke, keysRotate, keysUpdate } from "./keys-commands.ts";
import { migrate } from "./migrate-command.ts";
import { models } from "./models-command.ts";
import { serve } from "./serve-command.ts";
import { usage } from "./usage-command.ts";
import { simulate } from "./simulate-command.ts";

const help: Command = {
  name: "help",
  summary: "print this",
  positionals: [],
  flags: {},
  async run(_, { stdout }) {
    stdout.write(formatOverview(COMMANDS));
    return EXIT.ok;
  },
};

const version: Command = {
  name: "version",
  summary: "print the version",
  positionals: [],
  flags: {},
  async run(_, { stdout }) {
    stdout.write(`${readVersion()}\n`);
    return EXIT.ok;
  },
};

const COMMANDS: readonly Command[] = [
  serve,
  simulate,
  configCheck,
  models,
  keysCreate,
  keysList,
  keysUpdate,
  keysRotate,
  keysRevoke,
  accountsCreate,
  accountsList,
  accountsDisable,
  accountsEnable,
  accountsLimit,
  accountsResetPassword,
  usage,
  migrate,
  backup,
  version,
  help,
];

/**
 * Runs one command line (without the program's name) and answers with the exit code: 0 done, 1 failed, 2 the command line
 * is wrong, 78 the configuration is wrong. Never throws and never shows a stack trace.
 */
export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  let command: Command | undefined;
  try {
    if (argv.length === 0) throw new UsageError("a command is missing");
    command = findCommand(argv);
    const invocation = parseArguments(command, argv.slice(command.name.split(" ").length));
    if (invocation !== undefined) return await command.run(invocation, context);
    context.stdout.write(formatHelp(command));
    return EXIT.ok;
  } catch (error) {
    return explain(error, command, context);
  }
}

const ALIASES: Readonly<Record<string, string>> = {
  "--help": "help",
  "-h": "help",
  "--version": "version",
  "-v": "version",
};

function findCommand([first = "", second = ""]: readonly string[]): Command {
  const word = Object.hasOwn(ALIASES, first) ? ALIASES[first] : first;
  const found = COMMANDS.find(({ name }) => name === word || name === `${word} ${second}`);
  if (found !== undefined) return found;
  const names = COMMANDS.map(({ name }) => name);
  const group = names.filter((name) => name.startsWith(`${first} `));
  const both = `${first} ${second}`.trim();
  const [asked, known] = group.length > 0 ? [both, group] : [first, names];
  const meant = nearest(asked, known) ?? nearest(both, names);
  const remedy = meant === undefined ? `there are: ${known.join(", ")}` : `did you mean "${meant}"?`;
  throw new UsageError(`unknown command "${asked}"; ${remedy}`);
}

function explain(error: unknown, command: Command | undefined, { stderr }: CliContext): number {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof UsageError) {
    stderr.write(`parley: ${message}\nSee: parley ${command === undefined ? "help" : `${command.name} --help`}\n`);
    return EXIT.usage;
  }
  if (error instanceof ConfigError) {
    stderr.write(`${message}\n`);
    return EXIT.config;
  }
  stderr.write(`parley: ${message}\n`);
  return EXIT.failed;
}
