import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../../src/store/store.ts";
import { HISTORY_KEYS, HISTORY_MODELS, writeHistory } from "../../support/history.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

/** What a page may take, with room for a machine that has other things to do. */
const LIMIT_MS = 300;
const DAY_MS = 86_400_000;
const UNTIL_MS = Date.UTC(2026, 10, 21, 12);

const dataDir = mkdtempSync(join(tmpdir(), "parley-speed-"));
let store: Store;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };
const figures: string[] = [];

beforeAll(async () => {
  store = await openStore({ dataDir, databaseUrl: undefined });
  site = await startConsole({ signUp: "open", ledger: store.ledger, refusals: store.refusals });
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
  await writeHistory(store.ledger, { untilMs: UNTIL_MS, accountIds: [ada.id, bob.id] });
});
afterAll(async () => {
  site.close();
  await store.close();
  rmSync(dataDir, { recursive: true });
  console.log(figures.join("\n"));
});

/** The quickest of three: whatever else the machine does is not what is measured. */
async function quickest(name: string, call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < 3; run += 1) {
    const beganMs = performance.now();
    await call();
    times.push(performance.now() - beganMs);
  }
  const ms = Math.min(...times);
  figures.push(`${name}: ${ms.toFixed(1)} ms`);
  return ms;
}

describe.each(["administrator", "member"])("with 50,000 requests, the %s", (role) => {
  const who = (): Browser => (role === "administrator" ? ada : bob);

  it.each([
    ["all", {}],
    ["a key", { keyId: HISTORY_KEYS[1]! }],
    ["a model", { model: HISTORY_MODELS[5] }],
    ["a model that nobody asked for", { model: "nothing" }],
    ["served", { outcome: "served" }],
    ["failed", { outcome: "failed" }],
    ["an outcome that hardly happens", { outcome: "internal" }],
    ["an outcome that never happens", { outcome: "budget_spent" }],
    [
      "a day long ago",
      { since: timestampFromMs(UNTIL_MS - 29 * DAY_MS), until: timestampFromMs(UNTIL_MS - 28 * DAY_MS) },
    ],
    ["a key, a model and failed", { keyId: HISTORY_KEYS[1]!, model: HISTORY_MODELS[0], outcome: "failed" }],
  ])("lists %s in time", async (name, filter) => {
    const list = () => who().request.list({ filter });
    expect(await quickest(`List by the ${role}, ${name}`, list)).toBeLessThan(LIMIT_MS);
  });

  it("goes to the last page of what fails in time, page by page", async () => {
    let pageToken = "";
    let slowestMs = 0;
    let count = 0;
    do {
      const beganMs = performance.now();
      const page = await who().request.list({ filter: { outcome: "failed" }, limit: 100, pageToken });
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
      count += page.requests.length;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    figures.push(`List by the ${role}, all pages of failed: ${count} requests, the slowest ${slowestMs.toFixed(1)} ms`);
    expect(count).toBeGreaterThan(1_000);
    expect(slowestMs).toBeLessThan(2 * LIMIT_MS);
  });

  it("opens one request in time", async () => {
    const { requests } = await who().request.list({ filter: { keyId: HISTORY_KEYS[1]! } });
    const { id, requestId } = requests.at(-1) ?? (await who().request.list({})).requests.at(-1)!;
    for (const [name, named] of Object.entries({ "completion's": id, "request's": requestId }))
      expect(await quickest(`Get by the ${role}, the ${name} ID`, () => who().request.get({ id: named }))).toBeLessThan(
        LIMIT_MS,
      );
    const missing = () =>
      who()
        .request.get({ id: "req_missing" })
        .catch(() => undefined);
    expect(await quickest(`Get by the ${role}, of none`, missing)).toBeLessThan(LIMIT_MS);
  });
});
