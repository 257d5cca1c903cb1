import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toCsv } from "../../src/encoding/csv.ts";

describe("a CSV file", () => {
  it("has a line per row, and quotes fields where necessary", () => {
    const rows = [
      ["name", "cost"],
      ["plain", 1.5],
      ['say "hi", all', -2],
      ["two\nlines\r", undefined],
    ];
    expect(toCsv(rows)).toBe('name,cost\r\nplain,1.5\r\n"say ""hi"", all",-2\r\n"two\nlines\r",\r\n');
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])(
    "escapes the text %j, which a spreadsheet would read as a formula",
    (text) => {
      expect(toCsv([[text]])).toMatch(/^"?'/);
    },
  );

  it("escapes a formula after a semicolon, at which spreadsheets of many countries begin a cell", () => {
    expect(toCsv([["a;=1+1;-2; -3;b"]])).toBe("a;'=1+1;'-2; -3;b\r\n");
  });

  it("escapes a formula after a semicolon and quotation marks, which such spreadsheets read as an empty text before it", () => {
    expect(toCsv([['x;"=1+1;y', 'x;""\t1']])).toBe(`"x;""'=1+1;y","x;""""'\t1"\r\n`);
  });

  it("does not change numbers, including negative ones", () => {
    expect(toCsv([[-1, 0, 1e-6, 12_345_678]])).toBe("-1,0,0.000001,12345678\r\n");
  });

  it("round-trips any text", () => {
    const cell = fc.string({ unit: "grapheme" });
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 4 })), (rows) => {
        const read = readCsv(toCsv(rows));
        const plain = (row: readonly string[]) => row.map((text) => text.replaceAll(/(^|;"*)'(?=[=+\-@\t\r])/g, "$1"));
        expect(read.map(plain)).toEqual(rows.map(plain));
      }),
    );
  });
});

/** Parses RFC 4180, character by character. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let [row, field, isQuoted]: [string[], string, boolean] = [[], "", false];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (isQuoted && character === '"' && text[at + 1] === '"') field += text[(at += 1)]!;
    else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && character === ",") [row, field] = [[...row, field], ""];
    else if (!isQuoted && character === "\r" && text[at + 1] === "\n") {
      rows.push([...row, field]);
      [row, field] = [[], ""];
      at += 1;
    } else field += character;
  }
  return rows;
}
