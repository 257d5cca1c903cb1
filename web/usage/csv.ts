/** A cell of a table: a text, a number, or nothing. */
export type CsvCell = string | number | undefined;

/**
 * A table as RFC 4180 has it. A text that a spreadsheet would take for a formula begins with an apostrophe: keys and models
 * are called whatever somebody liked.
 */
export function toCsv(rows: readonly (readonly CsvCell[])[]): string {
  return rows.map((row) => `${row.map(toField).join(",")}\r\n`).join("");
}

function toField(cell: CsvCell): string {
  if (cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
