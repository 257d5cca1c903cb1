import { describe, expect, it } from "vitest";
import type { Page } from "../../src/access/key-store.ts";
import { formatTable } from "../../src/cli/output.ts";
import { pagesOf, writeJsonPages, writeTablePages } from "../../src/cli/pages.ts";

/** A list with a number of rows, and the sizes of the pages that were read. */
function listOf(count: number) {
  const rows = Array.from({ length: count }, (_, index) => ({
    id: `key_${1_000_000 + index}`,
    createdAtMs: index >> 3,
  }));
  const sizes: number[] = [];
  const read = async ({ limit, after }: Page) => {
    const from = after === undefined ? 0 : rows.findIndex(({ id }) => id === after.id) + 1;
    const page = rows.slice(from, from + limit);
    sizes.push(page.length);
    return page;
  };
  return { rows, sizes, pages: () => pagesOf(read) };
}

/** What a function writes. */
async function written(write: (output: { write(text: string): void }) => Promise<void>): Promise<string> {
  let text = "";
  await write({ write: (piece) => void (text += piece) });
  return text;
}

describe("pages of a list", () => {
  it.each([
    [0, [0]],
    [999, [999, 0]],
    [1_000, [1_000, 0]],
    [2_001, [1_000, 1_000, 1, 0]],
  ])("of %i rows are written as one list and one table", async (count, sizes) => {
    const list = listOf(count);
    expect(await written((output) => writeJsonPages(output, list.pages(), (row) => row))).toBe(
      `${JSON.stringify(list.rows, undefined, 2)}\n`,
    );
    expect(list.sizes).toEqual(sizes);
    const table = {
      heading: ["ID", "CREATED"],
      toRow: ({ id, createdAtMs }: { id: string; createdAtMs: number }) => [id, String(createdAtMs)],
    };
    expect(await written((output) => writeTablePages(output, list.pages(), table))).toBe(
      `${formatTable([table.heading, ...list.rows.map(table.toRow)])}\n`,
    );
  });
});
