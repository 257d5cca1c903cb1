import { parseArgs } from "node:util";
import { nearest } from "../encoding/nearest.ts";
import { UsageError, type Command, type Invocation } from "./command.ts";

/**
 * Reads a command's arguments. Undefined when they ask for help. Throws UsageError for an unknown or repeated flag, a
 * flag without its value, a switch with one, and for the wrong number of arguments.
 */
export function parseArguments(command: Command, args: readonly string[]): Invocation | undefined {
  const options = Object.fromEntries(
    Object.entries(command.flags).map(([name, { value }]) => [name, { type: value ? "string" : "boolean" } as const]),
  );
  // Not strict: its messages do not say what would be right, so the tokens are checked here.
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
    else if (flag === undefined) throw new UsageError(unknownFlag(token.rawName, command));
    else if (token.name in flags || switches.has(token.name)) throw new UsageError(`${token.rawName} is given twice`);
    else if (flag.value === undefined) {
      if (token.value !== undefined) throw new UsageError(`${token.rawName} takes no value`);
      switches.add(token.name);
    } else {
      // `--name --json` forgot the name; `--name=--json` means it.
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

function unknownFlag(rawName: string, { flags }: Command): string {
  const known = [...Object.keys(flags), "help"].map((name) => `--${name}`);
  const meant = nearest(rawName, known);
  return `unknown flag ${rawName}; ${meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${meant}?`}`;
}
