import { parseArgs } from "node:util";
import { ConfigError } from "../config/config-error.ts";
import { readVersion } from "../config/version.ts";
import { nearest } from "../encoding/nearest.ts";
import { readOwnFile } from "../installation/own-files.ts";
import {
  accountsCreate,
  accountsDisable,
  accountsEnable,
  accountsLimit,
  accountsList,
  accountsOffboard,
  accountsResetFactors,
  accountsResetPassword,
} from "./accounts-commands.ts";
import { adminKeyCreate, adminKeyList, adminKeyRevoke } from "./admin-key-commands.ts";
import { alertsAdd, alertsChannels, alertsList, alertsRemove, alertsTest } from "./alerts-commands.ts";
import { auditExport, auditList, auditVerify } from "./audit-commands.ts";
import { budgetsList, budgetsSet } from "./budgets-commands.ts";
import { type CliContext, type Command, EXIT, type Invocation, UsageError } from "./command.ts";
import { configCheck, models } from "./config-commands.ts";
import { configConvert } from "./convert-command.ts";
import { health } from "./health-command.ts";
import { invitationsList, invitationsRevoke, teamsInvite } from "./invitations-commands.ts";
import { keysCreate, keysList, keysRevoke, keysRotate, keysTransfer, keysUpdate } from "./keys-commands.ts";
import { formatTable } from "./output.ts";
import { providersTest } from "./providers-commands.ts";
import { rolesCreate, rolesList, rolesRemove } from "./roles-commands.ts";
import { routeExplain } from "./route-commands.ts";
import {
  accountsAliases,
  credentialsList,
  credentialsRemove,
  credentialsReseal,
  credentialsSet,
} from "./routing-commands.ts";
import { serve } from "./serve-command.ts";
import { accountsLink, accountsSignInLink, accountsUnlink } from "./sign-in-commands.ts";
import {
  configExport,
  configImport,
  configList,
  configRemove,
  configRollback,
  configSet,
  configVersions,
} from "./stored-commands.ts";
import { simulate } from "./simulate-command.ts";
import { backup, migrate } from "./store-commands.ts";
import { teamsAdd, teamsCreate, teamsList, teamsMembers, teamsRemove } from "./teams-commands.ts";
import { usage } from "./usage-command.ts";

const helpCommand: Command = {
  name: "help",
  summary: "print this help",
  positionals: [],
  flags: {},
  async run(_, { stdout }) {
    stdout.write(formatOverview(COMMANDS));
    return EXIT.ok;
  },
};

const version: Command = {
  name: "version",
  summary: "print the version, or what is in this release",
  positionals: [],
  flags: {
    licenses: { help: "print the licences of what is in this release" },
    sbom: { help: "print the list of what is in this release (CycloneDX)" },
  },
  async run({ switches }, { stdout }) {
    if (switches.has("licenses")) stdout.write(readReleaseFile("THIRD-PARTY-LICENSES.txt"));
    else if (switches.has("sbom")) stdout.write(readReleaseFile("sbom.cdx.json"));
    else stdout.write(`${readVersion()}\n`);
    return EXIT.ok;
  },
};

function readReleaseFile(name: string): string {
  try {
    return readOwnFile(name);
  } catch (cause) {
    throw new Error(`${name} is part of releases only; make one with: npm run release`, { cause });
  }
}

const COMMANDS: readonly Command[] = [
  serve,
  simulate,
  configCheck,
  configList,
  configSet,
  configRemove,
  configExport,
  configImport,
  configVersions,
  configRollback,
  configConvert,
  models,
  providersTest,
  routeExplain,
  keysCreate,
  keysList,
  keysUpdate,
  keysRotate,
  keysTransfer,
  keysRevoke,
  budgetsList,
  budgetsSet,
  adminKeyCreate,
  adminKeyList,
  adminKeyRevoke,
  accountsCreate,
  accountsList,
  accountsDisable,
  accountsEnable,
  accountsLimit,
  accountsOffboard,
  accountsResetPassword,
  accountsResetFactors,
  accountsSignInLink,
  accountsLink,
  accountsUnlink,
  accountsAliases,
  teamsCreate,
  teamsList,
  teamsMembers,
  teamsAdd,
  teamsRemove,
  teamsInvite,
  invitationsList,
  invitationsRevoke,
  rolesList,
  rolesCreate,
  rolesRemove,
  credentialsSet,
  credentialsList,
  credentialsRemove,
  credentialsReseal,
  usage,
  alertsList,
  alertsChannels,
  alertsAdd,
  alertsTest,
  alertsRemove,
  auditList,
  auditExport,
  auditVerify,
  migrate,
  backup,
  health,
  version,
  helpCommand,
];

/**
 * Runs one command line (without the program's name) and answers with the exit code: 0 done, 1 failed, 2 the command line
 * is wrong, 78 the configuration is wrong. Never throws and never shows a stack trace.
 */
export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  let command: Command | undefined;
  try {
    if (argv.length === 0) throw new UsageError("a command is missing");
    const words = withHelpLast(argv);
    const group = commandsOf(words[0]!);
    if (group.length > 0 && HELP_FLAGS.has(words[1]!)) {
      context.stdout.write(formatOverview(group));
      return EXIT.ok;
    }
    command = findCommand(words);
    const invocation = parseArguments(command, words.slice(command.name.split(" ").length));
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

const HELP_FLAGS: ReadonlySet<string> = new Set(["--help", "-h"]);

/** `help keys create` is `keys create --help`, `help keys` is `keys --help`. */
function withHelpLast([first = "", ...rest]: readonly string[]): readonly string[] {
  const word = Object.hasOwn(ALIASES, first) ? ALIASES[first]! : first;
  return word === "help" && rest[0]?.startsWith("-") === false ? [...rest, "--help"] : [word, ...rest];
}

/** The commands of two words that begin with this one. */
function commandsOf(first: string): readonly Command[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
}

function findCommand([first = "", second = ""]: readonly string[]): Command {
  const found = COMMANDS.find(({ name }) => name === first || name === `${first} ${second}`);
  if (found !== undefined) return found;
  const names = COMMANDS.map(({ name }) => name);
  const group = commandsOf(first).map(({ name }) => name);
  const both = `${first} ${second}`.trim();
  const [asked, known] = group.length > 0 ? [both, group] : [first, names];
  const meant = nearest(asked, known) ?? nearest(both, names);
  const ofGroup = group.length > 0 ? `; known commands: ${group.join(", ")}` : "";
  throw new UsageError(`unknown command "${asked}"${meant === undefined ? ofGroup : `; did you mean "${meant}"?`}`);
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

/** The list of commands. */
function formatOverview(commands: readonly Command[]): string {
  return [
    "Parley: one completion endpoint in front of many models.",
    "",
    "Usage: parley COMMAND [FLAGS]",
    "",
    formatTable(commands.map(({ name, summary }) => [`  ${name}`, summary])),
    "",
    "For the flags of a command: parley COMMAND --help",
    "",
  ].join("\n");
}

/** The help of one command. */
function formatHelp({ name, summary, positionals, flags }: Command): string {
  const rows = Object.entries(flags).map(([flag, { value, help }]) => [`  --${flag}${value ? ` ${value}` : ""}`, help]);
  return [
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    "",
    `Usage: ${["parley", name, ...positionals, "[FLAGS]"].join(" ")}`,
    "",
    formatTable([...rows, ["  --help", "print this help"]]),
    "",
  ].join("\n");
}

/**
 * Reads a command's arguments. Undefined when they ask for help. Throws UsageError for an unknown or repeated flag, a
 * flag without its value, a switch with one, and for the wrong number of arguments.
 */
function parseArguments(command: Command, args: readonly string[]): Invocation | undefined {
  const options = Object.fromEntries(
    Object.entries(command.flags).map(([name, { value }]) => [name, { type: value ? "string" : "boolean" } as const]),
  );
  // Not strict: parseArgs' error messages do not suggest a correction, so the tokens are checked here.
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...options, help: { type: "boolean", short: "h" } },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags: Record<string, string> = {};
  const switches = new Set<string>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const flag = Object.hasOwn(command.flags, token.name) ? command.flags[token.name] : undefined;
    if (token.name === "help") switches.add("help");
    else if (flag === undefined) throw new UsageError(unknownFlag(token, command));
    else if (token.name in flags || switches.has(token.name)) throw new UsageError(`${token.rawName} is given twice`);
    else if (flag.value === undefined) {
      if (token.value !== undefined) throw new UsageError(`${token.rawName} takes no value`);
      switches.add(token.name);
    } else {
      // `--name --json` lacks the value; `--name=--json` has it.
      const forgotten =
        token.value === undefined || token.value === "" || (!token.inlineValue && token.value.startsWith("-"));
      if (forgotten) throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${flag.value}`);
      flags[token.name] = token.value;
    }
  }
  if (switches.has("help")) return undefined;
  checkPositionals(command, positionals);
  return { flags, switches, positionals };
}

function checkPositionals({ positionals: names, name }: Command, given: readonly string[]): void {
  const missing = names[given.length];
  if (missing !== undefined) throw new UsageError(`${missing} is missing: parley ${name} ${names.join(" ")}`);
  const surplus = given[names.length];
  if (surplus !== undefined) throw new UsageError(`the argument "${surplus}" is not expected`);
}

function unknownFlag(
  { name, rawName }: { readonly name: string; readonly rawName: string },
  { flags }: Command,
): string {
  const known = [...Object.keys(flags), "help"];
  // Without the dashes, which every flag has: they would make short names alike.
  const meant = nearest(name, known);
  const remedy =
    meant === undefined ? `known flags: ${known.map((one) => `--${one}`).join(", ")}` : `did you mean --${meant}?`;
  return `unknown flag ${rawName}; ${remedy}`;
}
