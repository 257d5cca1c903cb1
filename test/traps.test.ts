import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Reference, readReferences, titlesOf } from "./support/test-references.ts";
import { readTitles } from "./support/test-titles.ts";

const COUNT = 107;
const FORMATS_COUNT = 73;

/** One row of a list of traps: the trap's number, as it is written too, and what its last column names. */
interface Row {
  readonly name: string;
  readonly number: number;
  readonly references: readonly Reference[];
}

const FIXTURES = readdirSync(join(import.meta.dirname, "fixtures"));
const ROWS = readRows(readFileSync(join(import.meta.dirname, "../docs/traps.md"), "utf8"));

describe("docs/traps.md", () => {
  it("lists every trap once, in order", () => {
    expect(ROWS.map(({ number }) => number)).toEqual(Array.from({ length: COUNT }, (_, index) => index + 1));
  });

  it.each(ROWS)("says of trap $number which tests show it, and they exist", ({ number, references }) => {
    expect(references).not.toEqual([]);
    for (const reference of references) expect(reference).toSatisfy((one: Reference) => exists(one, number));
  });
});

describe("docs/traps-formats.md", () => {
  const rows = readRows(readFileSync(join(import.meta.dirname, "../docs/traps-formats.md"), "utf8"));

  it("lists every trap once, in order", () => {
    const numbers = Array.from({ length: FORMATS_COUNT - 1 }, (_, index) => String(index + 1));
    expect(rows.map(({ name }) => name)).toEqual(numbers.toSpliced(15, 0, "15a"));
  });

  it.each(rows)("says of trap $name which tests show it, and they exist", ({ references }) => {
    expect(references).not.toEqual([]);
    for (const reference of references)
      expect(reference).toSatisfy((one: Reference) => "words" in one && one.words !== undefined && exists(one, 0));
  });
});

describe("the titles of a test file", () => {
  const source = [
    '// it("trap 1: in a comment")',
    'import { it } from "trap 2";',
    'describe("trap 3: a group", () => {',
    '  it("traps 4, 5 and 6: a test", () => { expect("trap 7").toBe("trap 7"); });',
    '  it.each([["trap 8: a row", 1], [`trap 9: ${1} row`, 2]])("%s (trap 10)", () => undefined);',
    '  it.each(TABLE)("%s", () => undefined);',
    "});",
    'const TABLE = [["trap 13: a row of a table with a name"]];',
    'const OTHER = [["trap 14: no title"]];',
    'const SCENARIOS = [{ name: "trap 11: a scenario", said: "trap 12" }];',
  ].join("\n");
  const titles = readTitles("example.test.ts", source);

  it("are those of its tests, groups, tables and scenarios, and nothing else", () => {
    expect(titles).toEqual([
      "trap 3: a group",
      "traps 4, 5 and 6: a test",
      "trap 8: a row",
      "trap 9: … row",
      "%s (trap 10)",
      "%s",
      "trap 13: a row of a table with a name",
      "trap 11: a scenario",
    ]);
  });

  it("name traps one by one, or several at once", () => {
    expect(titles.flatMap(trapsIn)).toEqual([3, 4, 5, 6, 8, 9, 10, 13, 11]);
  });
});

/** Reads the tables. Throws at a row whose last column is not made of references. */
function readRows(text: string): Row[] {
  return [...text.matchAll(/^\| (\d+a?) \|.* \| (.*) \|$/gm)].map(([, name = "", cell = ""]) => {
    return { name, number: Number(name), references: readReferences(cell) };
  });
}

function exists(reference: Reference, number: number): boolean {
  if ("fixture" in reference) return FIXTURES.some((name) => name.startsWith(`${reference.fixture}-`));
  const { file, words } = reference;
  return titlesOf(file).some((title) =>
    words === undefined ? trapsIn(title).includes(number) : title.includes(words),
  );
}

/** The numbers behind "trap" or "traps": `trap 5`, `trap 5, 9 and 10`. */
function trapsIn(title: string): number[] {
  return [...title.matchAll(/\btraps? (\d+(?:(?:, | and )\d+)*)/g)].flatMap(([, list = ""]) =>
    [...list.matchAll(/\d+/g)].map(Number),
  );
}
