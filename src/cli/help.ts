import type { Command } from "./command.ts";
import { formatTable } from "./table.ts";

/** The list of commands. */
export function formatOverview(commands: readonly Command[]): string {
  return [
    "Parley: one completion endpoint in front of many models.",
    "",
    "Usage: parley COMMAND [FLAGS]",
    "",
    formatTable(commands.map(({ name, summary }) => [`  ${name}`, summary])),
    "",
    "parley COMMAND --help explains a command.",
    "",
  ].join("\n");
}

/** One command in full. */
export function formatHelp({ name, summary, positionals, flags }: Command): string {
  const rows = Object.entries(flags).map(([flag, { value, help }]) => [`  --${flag}${value ? ` ${value}` : ""}`, help]);
  return [
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    "",
    `Usage: ${["parley", name, ...positionals, "[FLAGS]"].join(" ")}`,
    "",
    formatTable([...rows, ["  --help", "print this"]]),
    "",
  ].join("\n");
}
