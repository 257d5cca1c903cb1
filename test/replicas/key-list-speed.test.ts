import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KeyOrder } from "../../gen/parley/console/v1/key_pb.js";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "../inbound/dashboard/set-up.ts";
import { writeHistory } from "../support/history.ts";
import { DATABASES, type OpenedDatabase } from "./support/databases.ts";

const MAX_MS = 300;
const ROUNDS = 5;
const MAX_ROUNDS = 30;
const KEYS = 1_000;

/** How long a sorted page of 100 keys takes over HTTP, said in the test's output. */
describe.each(DATABASES)("the list of 1,000 keys with 50,000 requests on %s", (database, open) => {
  let opened: OpenedDatabase;
  let site: ConsoleUnderTest;
  let ada: Browser;

  beforeAll(async () => {
    opened = await open();
    const { store } = opened;
    site = await startConsole({ signUp: "open", store });
    const owner = await site.signedUp("ada");
    ada = owner;
    const { clock } = site.access;
    const keyIds: string[] = [];
    for (let index = 0; index < KEYS; index += 1) {
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: index % 3 === 0 ? undefined : index };
      const context = { store: store.keys, clock };
      const made = await createKey(context, { name: `key ${(index * 77) % KEYS}`, limits, accountId: owner.id });
      keyIds.push(made.record.id);
    }
    await writeHistory(store.ledger, { untilMs: clock.now(), keyIds, accountIds: [owner.id] });
    await store.ledger.flush();
  }, 240_000);
  afterAll(async () => {
    site.close();
    await opened.close();
  });

  it("is sorted by every column within 300 ms, on the first page and the next", async () => {
    const figures: Record<string, Record<string, string>> = {};
    const slow: string[] = [];
    for (const order of [0, 1, 2, 3, 4, 5])
      for (const descending of [false, true]) {
        const list = (pageToken: string) => ada.key.list({ order, descending, active: true, limit: 100, pageToken });
        const { keys, nextPageToken } = await list("");
        expect(keys).toHaveLength(100);
        const name = `${KeyOrder[order]}${descending ? ", descending" : ""}`;
        const times = [await bestOf(() => list("")), await bestOf(() => list(nextPageToken))];
        figures[name] = { first: `${times[0]!.toFixed(0)} ms`, next: `${times[1]!.toFixed(0)} ms` };
        if (Math.max(...times) > MAX_MS) slow.push(name);
      }
    console.log(
      `1,000 keys with 50,000 requests on ${database}, a page of 100 over HTTP, the best of ${ROUNDS} answers:`,
    );
    console.table(figures);
    expect(slow).toEqual([]);
  }, 120_000);
});

/** The shortest of some answers, and of more where they take long: what else the machine does is not to be measured. */
async function bestOf(ask: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let round = 0; round < ROUNDS || (round < MAX_ROUNDS && best > MAX_MS); round += 1) {
    const start = performance.now();
    await ask();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}
