/** A cell: text, number or empty. */
export type CsvCell = string | number | undefined;

/**
 * Formats a table as CSV (RFC 4180). An apostrophe precedes text that a spreadsheet would read as a formula, because
 * users choose the names of keys and models; also after a semicolon, at which spreadsheets of many countries begin a cell,
 * and quotation marks behind it, which such a spreadsheet reads as an empty text before the formula.
 */
export function toCsv(rows: readonly (readonly CsvCell[])[]): string {
  return rows.map((row) => `${row.map(toField).join(",")}\r\n`).join("");
}

function toField(cell: CsvCell): string {
  if (cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  const text = cell.replaceAll(/(^|;"*)(?=[=+\-@\t\r])/g, "$1'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
