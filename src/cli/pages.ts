import type { Page } from "../access/key-store.ts";
import type { Output } from "./command.ts";
import { formatTable, widthsOf } from "./output.ts";

/** Rows of one statement. */
const PAGE_ROWS = 1_000;

/** Reads a whole list page by page, oldest first. */
export async function* pagesOf<R extends { readonly id: string; readonly createdAtMs: number }>(
  read: (page: Page) => Promise<readonly R[]>,
): AsyncGenerator<readonly R[]> {
  for (let after: R | undefined; ;) {
    const rows = await read({ limit: PAGE_ROWS, after });
    // A page may end before its limit.
    if (rows.length === 0) return;
    yield rows;
    after = rows.at(-1);
  }
}

/** Writes pages as one JSON list. */
export async function writeJsonPages<R>(
  output: Output,
  pages: AsyncIterable<readonly R[]>,
  toJson: (row: R) => object,
): Promise<void> {
  let before = "[";
  for await (const rows of pages) {
    // The items of a list, indented as in it.
    const items = JSON.stringify(rows.map(toJson), undefined, 2).slice(2, -2);
    output.write(`${before}\n${items}`);
    before = ",";
  }
  output.write(before === "[" ? "[]\n" : "\n]\n");
}

/** Writes pages as one table. Its columns are as wide as the first page needs, and wider rows as they are. */
export async function writeTablePages<R>(
  output: Output,
  pages: AsyncIterable<readonly R[]>,
  { heading, toRow }: { readonly heading: readonly string[]; readonly toRow: (row: R) => readonly string[] },
): Promise<void> {
  let widths: readonly number[] | undefined;
  for await (const rows of pages) {
    const lines = [...(widths === undefined ? [heading] : []), ...rows.map(toRow)];
    output.write(`${formatTable(lines, (widths ??= widthsOf(lines)))}\n`);
  }
  if (widths === undefined) output.write(`${formatTable([heading])}\n`);
}
