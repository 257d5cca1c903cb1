import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";
import { createKey } from "../support/cli.ts";

const CALLERS = 8;
/** Of the budget, an answer costs 7 and its worst case some 150. */
const BUDGET_MICRO_USD = 1_000;

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "Hello."));
  const config = { ...localModel(upstream.url), limits: UNLIMITED, ledger: { durability: "interval" } };
  product = await startProduct({ home: makeHome(), config });
});
afterAll(async () => {
  await product.stop();
  await upstream.close();
});

async function ask(key: string): Promise<number> {
  const response = await postChat(product.url, key, {
    model: "local/test",
    max_tokens: 2,
    messages: [{ role: "user", content: "Hi." }],
  });
  await response.arrayBuffer();
  return response.status;
}

/** Outcomes and costs of all entries. */
async function readEntries(): Promise<readonly { readonly outcome: string; readonly cost: number }[]> {
  const dataDir = join(product.home, "data");
  // The closed database has compacted its pending entries.
  await (await openStore({ dataDir, databaseUrl: undefined })).close();
  const database = new DatabaseSync(join(dataDir, "parley.db"), { readOnly: true });
  try {
    const rows = database.prepare("select outcome, cost_micro_usd from completions").all();
    return rows.map((row) => ({ outcome: String(row["outcome"]), cost: Number(row["cost_micro_usd"]) }));
  } finally {
    database.close();
  }
}

describe("answers that do not wait for the ledger", () => {
  it("stay within a budget, and are all in the ledger when the process has stopped", async () => {
    const { key } = await createKey(product, `--budget ${BUDGET_MICRO_USD / 1e6}`);
    const counts = await Promise.all(
      Array.from({ length: CALLERS }, async () => {
        const statuses: number[] = [];
        do statuses.push(await ask(key));
        while (statuses.at(-1) === 200);
        return statuses;
      }),
    );
    expect(counts.map((statuses) => statuses.at(-1))).toEqual(Array.from({ length: CALLERS }, () => 429));
    const total = counts.flat().length - CALLERS;
    expect(total).toBeGreaterThan(CALLERS);
    product.signal("SIGTERM");
    expect(await product.ending).toEqual({ code: 0, signal: null });
    const entries = await readEntries();
    expect(entries.map(({ outcome }) => outcome)).toEqual(Array.from({ length: total }, () => "served"));
    expect(entries.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(BUDGET_MICRO_USD);
  });
});
