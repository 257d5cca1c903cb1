import { type AttributedBudget, givenBudget, setOwnBudget } from "../access/attributed-budgets.ts";
import { unknownId } from "../access/checks.ts";
import type { KeyRecord } from "../access/key-store.ts";
import { periodAt, systemClock } from "../core/clock.ts";
import type { StopKind } from "../core/stops.ts";
import type { Store } from "../store/store.ts";
import { ACTOR } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, type Invocation, JSON_FLAG, writeJson } from "./command.ts";
import { MICRO_USD, readUsd } from "./limit-flags.ts";
import { writeJsonPages, writeTablePages } from "./pages.ts";
import { commandLog, withStore } from "./with-store.ts";

const SESSIONS_FLAG = { sessions: { help: "of sessions (default: of end users)" } } as const;

/** Rows of one statement. */
const PAGE_ROWS = 1_000;

export const budgetsList: Command = {
  name: "budgets list",
  summary: "list what each end user of a key has used of its budget in the present period, highest spending first",
  positionals: ["KEY-ID"],
  flags: {
    ...SESSIONS_FLAG,
    search: { value: "TEXT", help: "only names with this text, in any case" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async ({ keys, attributedBudgets }) => {
      const { id, keyFamilyId, attributionLimits } = await findKey(keys, invocation);
      const kind = kindOf(invocation);
      const given = givenBudget(attributionLimits, kind);
      if (given === undefined) {
        const [what, flag] =
          kind === "session" ? ["session", "--session-budget 1"] : ["end user", "--end-user-budget 0.50/day"];
        throw new Error(`${id} has no budget for each ${what}; give it one: parley keys update ${id} ${flag}`);
      }
      const period = periodAt(systemClock.now(), given.period);
      const query = { kind, keyFamilyId, period, search: invocation.flags["search"] ?? "", limit: PAGE_ROWS };
      const pages = pagesOf((after) => attributedBudgets.list({ ...query, after }));
      const shownOf = (budget: AttributedBudget) => toShown(budget, { givenMicroUsd: given.limitMicroUsd, period });
      if (invocation.switches.has("json")) return writeJsonPages(context.stdout, pages, shownOf);
      const toRow = (budget: AttributedBudget): string[] => {
        const { name, spent_usd, held_usd, budget_usd, left_usd, own_budget } = shownOf(budget);
        const amounts = [spent_usd, held_usd, budget_usd, left_usd].map(String);
        return [name ?? "(name not stored yet)", ...amounts, own_budget ? "own" : "key"];
      };
      await writeTablePages(context.stdout, pages, { heading: HEADING, toRow });
    }),
};

export const budgetsSet: Command = {
  name: "budgets set",
  summary: "give one end user of a key another budget until the present period ends; none: that of the key again",
  positionals: ["KEY-ID", "NAME", "USD|none"],
  flags: { ...SESSIONS_FLAG, ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withStore(invocation, context, async ({ keys, attributedBudgets, audit }) => {
      const [, name = "", amount = ""] = invocation.positionals;
      const kind = kindOf(invocation);
      const limitMicroUsd = readUsd(amount, "the budget");
      const key = await findKey(keys, invocation);
      const ports = { budgets: attributedBudgets, clock: systemClock, log: commandLog(audit, context) };
      const change = { kind, name, limitMicroUsd, by: "administrator", actor: ACTOR } as const;
      const budget = await setOwnBudget(ports, key, change);
      const { period, limitMicroUsd: givenMicroUsd } = givenBudget(key.attributionLimits, kind)!;
      const shown = toShown(budget, { givenMicroUsd, period: periodAt(systemClock.now(), period) });
      if (invocation.switches.has("json")) return writeJson(context.stdout, shown);
      const until = kind === "session" ? "as long as the session is known" : `until the end of ${shown.period} (UTC)`;
      const whose = limitMicroUsd === undefined ? "the budget of the key" : `a budget of its own ${until}`;
      context.stdout.write(`${name} has ${whose}: ${shown.budget_usd} USD, of which ${shown.left_usd} are left.\n`);
    }),
};

const HEADING = ["NAME", "SPENT", "HELD", "BUDGET", "LEFT", "OF"];

function kindOf({ switches }: Invocation): StopKind {
  return switches.has("sessions") ? "session" : "end_user";
}

async function findKey(keys: Store["keys"], { positionals: [id = ""] }: Invocation): Promise<KeyRecord> {
  const key = await keys.find(id);
  if (key === undefined) throw unknownId("key", id);
  return key;
}

/** Reads a list page by page: each continues after the last row of the one before. */
async function* pagesOf(
  read: (after: AttributedBudget | undefined) => Promise<{ readonly budgets: readonly AttributedBudget[] }>,
): AsyncGenerator<readonly AttributedBudget[]> {
  for (let after: AttributedBudget | undefined; ;) {
    const { budgets } = await read(after);
    if (budgets.length > 0) yield budgets;
    if (budgets.length < PAGE_ROWS) return;
    after = budgets.at(-1);
  }
}

/** As JSON, in US dollars. */
function toShown(
  { name, spentMicroUsd: spent, heldMicroUsd: held, limitMicroUsd: own }: AttributedBudget,
  { givenMicroUsd, period }: { readonly givenMicroUsd: number; readonly period: string },
) {
  const budget = own ?? givenMicroUsd;
  return {
    name: name ?? null,
    period,
    spent_usd: spent / MICRO_USD,
    held_usd: held / MICRO_USD,
    budget_usd: budget / MICRO_USD,
    left_usd: Math.max(0, budget - spent - held) / MICRO_USD,
    own_budget: own !== undefined,
  };
}
