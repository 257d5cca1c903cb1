import { describe, expect, it, onTestFinished } from "vitest";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { UsageGrouping, UsageStep } from "../../gen/parley/console/v1/usage_pb.js";
import { createKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { type Browser, startConsole } from "../inbound/dashboard/set-up.ts";
import { entry } from "../store/contracts/entries.ts";
import { writeHistory } from "../support/history.ts";
import { DATABASES } from "./support/databases.ts";

const DAY_MS = 86_400_000;
const MAX_MS = 300;
const ROUNDS = 5;
const MAX_ROUNDS = 30;
/** Of some 90 reports. */
const MAX_TEST_MS = 240_000;

/** How long the reports of the usage page take over HTTP with 50,000 requests behind them, said in the tests' output. */
describe.each(DATABASES)("the usage of 50,000 requests on %s", (database, open) => {
  it(
    "is served within 300 ms, however it is split, to members and administrators",
    async () => {
      const opened = await open();
      onTestFinished(() => opened.close());
      const { ledger, usage } = opened.store;
      const site = await startConsole({ signUp: "open", usage });
      onTestFinished(() => site.close());
      const administrator = await site.signedUp("ada");
      const member = await site.signedUp("bob");
      const untilMs = site.access.clock.now();
      const count = await writeHistory(ledger, { untilMs, accountIds: [administrator.id, member.id] });
      const filter = { since: timestampFromMs(untilMs - 31 * DAY_MS) };
      const { total } = await administrator.usage.summarize({ filter });
      expect([count, Number(total?.completions)]).toEqual([50_000, 50_000]);
      const figures: Record<string, Record<string, string>> = {};
      const slow: string[] = [];
      for (const [who, browser] of Object.entries({ administrator, member })) {
        for (const [name, ask] of reports(browser, filter)) {
          const best = await bestOf(ask);
          (figures[name] ??= {})[who] = `${best.toFixed(0)} ms`;
          if (best > MAX_MS) slow.push(`${name}: ${best.toFixed(0)} ms for the ${who}`);
        }
      }
      console.log(`usage of 50,000 requests on ${database}, the best of ${ROUNDS} answers over HTTP:`);
      console.table(figures);
      expect(slow).toEqual([]);
      // More than are looked at.
      const endedAtMs = untilMs - 31 * DAY_MS;
      await ledger.insert([entry({ endedAtMs: endedAtMs + 1 })]);
      const before = await administrator.usage.getLatency({ filter });
      await ledger.insert([entry({ endedAtMs })]);
      expect(await administrator.usage.getLatency({ filter })).toEqual(before);
    },
    MAX_TEST_MS,
  );

  it.runIf(database === "SQLite")(
    "is served in the overview within 300 ms, with 1,000 keys near their budgets",
    async () => {
      const opened = await open();
      onTestFinished(() => opened.close());
      const { keys, ledger } = opened.store;
      const site = await startConsole({ signUp: "open", store: opened.store });
      onTestFinished(() => site.close());
      const administrator = await site.signedUp("ada");
      const { clock } = site.access;
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 1 };
      const keyIds: string[] = [];
      for (let index = 0; index < 1_000; index += 1)
        keyIds.push((await createKey({ store: keys, clock }, { name: `key ${index}`, limits })).record.id);
      await writeHistory(ledger, { untilMs: clock.now(), keyIds });
      const best = await bestOf(() => administrator.overview.get({}));
      console.log(
        `overview of 1,000 keys and 50,000 requests on ${database}: ${best.toFixed(0)} ms, the best of ${ROUNDS}`,
      );
      expect(best).toBeLessThan(MAX_MS);
    },
    MAX_TEST_MS,
  );
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

/** Every way in which the page asks: for hours of one day. */
function reports(
  { usage }: Browser,
  filter: { readonly since: Timestamp },
): [name: string, ask: () => Promise<unknown>][] {
  const { UNSPECIFIED, MODEL, KEY, ACCOUNT, OUTCOME, TEAM, END_USER, SESSION, AGENT, TAG } = UsageGrouping;
  const groupings = Object.entries({
    nothing: UNSPECIFIED,
    model: MODEL,
    key: KEY,
    account: ACCOUNT,
    outcome: OUTCOME,
    team: TEAM,
    "end user": END_USER,
    session: SESSION,
    agent: AGENT,
    tag: TAG,
  });
  const lastDay = { since: timestampFromMs(timestampMs(filter.since) + 30 * DAY_MS) };
  const pieces = Object.entries({
    whole: { filter, step: UsageStep.UNSPECIFIED },
    days: { filter, step: UsageStep.DAY },
    hours: { filter: lastDay, step: UsageStep.HOUR },
  });
  return [
    ...groupings.flatMap(([group, by]) =>
      pieces.map(([length, asked]): [string, () => Promise<unknown>] => [
        `sums by ${group}, ${length}`,
        () => usage.summarize({ ...asked, by }),
      ]),
    ),
    ...pieces.map(([length, asked]): [string, () => Promise<unknown>] => [
      `latency, ${length}`,
      () => usage.getLatency(asked),
    ]),
    ["sum of one session", () => usage.summarize({ filter: { ...filter, session: "session 7" } })],
    ["sums of one agent by model", () => usage.summarize({ filter: { ...filter, agent: "opencode" }, by: MODEL })],
    ["latency of one tag", () => usage.getLatency({ filter: { ...filter, tag: "team=3" } })],
    ["latency of one model", () => usage.getLatency({ filter: { ...filter, model: "alpha-haiku-4.5" } })],
  ];
}
