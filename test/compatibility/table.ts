import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { DIALECTS, type Dialect } from "../../src/config/dialects.ts";

/** What makes a row's model differ from its dialect's default one: `modalities` and capabilities. */
export type Condition = Readonly<Record<string, unknown>>;

/** One row of a table with a column per dialect. */
export interface DialectRow {
  /** The first cell as it reads, without what comes after the comma: `temperature beside reasoning_effort`. */
  readonly name: string;
  /** Such as `messages[].name`. */
  readonly field: string;
  readonly condition: Condition;
  /** The path in our contract; undefined for none. */
  readonly proto: string | undefined;
  readonly cells: Readonly<Record<Dialect, string>>;
}

const text = readFileSync(join(import.meta.dirname, "../../docs/compatibility.md"), "utf8");

/** The rows of the table under a heading of `docs/compatibility.md`, cell by cell. */
export function tableUnder(heading: string): string[][] {
  const section = text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** The same for a table with a column per dialect. */
export function dialectRowsUnder(heading: string): DialectRow[] {
  return tableUnder(heading).map(([first = "", proto = "", ...cells]) => {
    const [name = "", condition] = first.split(/, (?=`)/);
    return {
      name: name.replaceAll("`", ""),
      field: codeIn(name)[0] ?? "",
      condition: condition === undefined ? {} : (parse(codeIn(condition)[0] ?? "") as Condition),
      proto: codeIn(proto)[0],
      cells: Object.fromEntries(DIALECTS.map((dialect, index) => [dialect, cells[index] ?? ""])) as DialectRow["cells"],
    };
  });
}

/** What stands between backticks. */
export function codeIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}
