import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { createTeam } from "../../src/access/teams.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { writeHistory } from "../support/history.ts";
import { setUp, type Site, startSite } from "./support/site.ts";

const LIMIT_MS = 1_000;
/** The quickest visit counts: other work of the machine is not measured. */
const VISITS = 10;

const MODELS = 206;
const KEYS = 1_000;
const TEAMS = 500;

let site: Site;
let page: Page;

function toConfig(): object {
  const model = {
    provider: "local",
    context_window: 128_000,
    max_output_tokens: 8_192,
    price: { input: 1, output: 2 },
  };
  return {
    providers: {
      local: { dialect: "openai", base_url: "http://127.0.0.1:9/v1", allow_private: true, api_keys: ["-"] },
    },
    models: Object.fromEntries(
      Array.from({ length: MODELS }, (_, index) => [
        `local/model-${index}`,
        { ...model, upstream_model: `model-${index}` },
      ]),
    ),
  };
}

beforeAll(async () => {
  site = await startSite({ config: toConfig() });
  ({ page } = await site.visit("/"));
  await setUp(page);
  const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
  const [owner] = await store.accounts.list({ limit: 1 });
  const keyIds: string[] = [];
  // And the first one, of the account.
  for (let index = 1; index < KEYS; index += 1) {
    const request = { name: `key ${index}`, accountId: owner!.id };
    keyIds.push((await createKey({ store: store.keys, clock: systemClock }, request)).record.id);
  }
  const team = { kind: "team", limits: undefined, actor: { actorId: owner!.id, network: "" } } as const;
  const log = { record: () => Promise.resolve() };
  for (let index = 0; index < TEAMS; index += 1)
    await createTeam({ store: store.accounts, clock: systemClock, log }, { ...team, name: `Team ${index}` });
  await writeHistory(store.ledger, { untilMs: Date.now() - 60_000, keyIds, accountIds: [owner!.id] });
  await store.close();
}, 240_000);
afterAll(() => site?.close());

describe(`with ${MODELS} models, ${KEYS} keys, ${TEAMS} teams and 50,000 requests`, () => {
  it.each([
    ["/", () => page.getByRole("heading", { name: "Overview" })],
    ["/usage", () => page.getByRole("table").first()],
    ["/requests", () => page.getByRole("table", { name: "Requests" }).getByRole("row").nth(20)],
    ["/keys", () => page.getByRole("table").first().getByRole("row").nth(20)],
    ["/models", () => page.getByRole("table").first().getByRole("row").nth(20)],
    ["/models/local/model-7", () => page.getByRole("heading", { name: "Latest requests" })],
    ["/playground", () => page.getByLabel("Message", { exact: true })],
    ["/alerts", () => page.getByRole("heading", { name: "Alerts" })],
    ["/account", () => page.getByRole("heading", { name: "Sessions" })],
    ["/admin/accounts", () => page.getByRole("table").first().getByRole("row").nth(1)],
    ["/admin/teams", () => page.getByRole("table").first().getByRole("row").nth(20)],
    ["/admin/configuration", () => page.getByRole("table").first().getByRole("row").nth(1)],
    ["/admin/providers", () => page.getByRole("table").first().getByRole("row").nth(20)],
    ["/admin/audit", () => page.getByRole("table").first().getByRole("row").nth(1)],
    ["/admin/settings", () => page.getByRole("heading", { name: "Settings" })],
  ])("%s is interactive within a second", async (path, shown) => {
    let ms = Infinity;
    for (let visits = 0; visits < VISITS && ms >= LIMIT_MS; visits += 1) {
      const beganMs = performance.now();
      await page.goto(`${site.product.url}${path}`);
      await shown().waitFor();
      ms = Math.min(ms, performance.now() - beganMs);
    }
    console.log(`${path}: ${ms.toFixed(0)} ms`);
    expect(ms).toBeLessThan(LIMIT_MS);
  });
});
