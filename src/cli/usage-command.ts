import { systemClock } from "../core/clock.ts";
import { type UsageRow, type UsageSums, wholeSteps } from "../ledger/usage-store.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { readMoment } from "./moments.ts";
import { formatTable } from "./output.ts";
import { findAccountByIdOrEmail, withStore } from "./with-store.ts";

const GROUPS = ["model", "key", "account", "team", "end-user", "session", "agent", "tag", "day"] as const;
type Group = (typeof GROUPS)[number];
const DEFAULT_SINCE = "30d";
const MICRO_USD = 1_000_000;
const DEFAULT_TOP = 100;
const MAX_TOP = 1_000;

export const usage: Command = {
  name: "usage",
  summary: "sum up the usage and cost in the ledger",
  positionals: [],
  flags: {
    by: { value: GROUPS.join("|"), help: "grouping of the sums (default: model)" },
    top: {
      value: "N",
      help: `rows, by largest cost, at most ${MAX_TOP}; one more has all others together (default: ${DEFAULT_TOP})`,
    },
    since: {
      value: "WHEN",
      help: `a date in UTC such as 2026-11-01, or an age such as 24h (default: ${DEFAULT_SINCE}); whole hours are counted`,
    },
    until: { value: "WHEN", help: "end, in the same form, exclusive, rounded up to a whole hour (default: now)" },
    account: { value: "A", help: "only of this account, by its ID or e-mail address" },
    key: { value: "ID", help: "only of this key" },
    session: { value: "S", help: "only of this session" },
    "end-user": { value: "U", help: "only of this end user" },
    agent: { value: "P", help: "only of this agent, the program that calls" },
    tag: { value: "T", help: "only with this tag" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store) => {
      const { flags, switches } = invocation;
      const nowMs = systemClock.now();
      const by = readGroup(flags["by"] ?? "model");
      const span = wholeSteps({
        sinceMs: readMoment(flags["since"] ?? DEFAULT_SINCE, "--since", nowMs),
        untilMs: flags["until"] === undefined ? nowMs + 1 : readMoment(flags["until"], "--until", nowMs),
      });
      const accountId = flags["account"] && (await findAccountByIdOrEmail(store.accounts, flags["account"])).id;
      const keyId = flags["key"];
      if (keyId !== undefined && (await store.keys.find(keyId)) === undefined)
        throw new UsageError(`there is no key ${keyId}; parley keys list shows all`);
      const maxGroups = readTop(flags["top"], by);
      const { session, agent, tag, "end-user": endUser } = flags;
      const group = by === "end-user" ? "endUser" : by;
      const pieces =
        group === "day" ? ({ by: "none", step: "day" } as const) : ({ by: group, step: "all", maxGroups } as const);
      const asked = { ...span, ...pieces, accountId, keyId, session, endUser, agent, tag };
      const { rows, total, isChosenByDay, cutSinceMs } = await store.usage.summarize(asked);
      if (switches.has("json")) {
        const [since, until] = [span.sinceMs, span.untilMs].map((atMs) => new Date(atMs).toISOString());
        const cutSince = cutSinceMs === undefined ? null : new Date(cutSinceMs).toISOString();
        const kinds = { by, chosen_by_day: isChosenByDay, cut_since: cutSince };
        writeJson(context.stdout, { since, until, ...kinds, usage: rows.map(toJson) });
        return;
      }
      context.stdout.write(`${toTable(by, rows, total)}\n`);
      if (isChosenByDay)
        context.stderr.write(
          `There are too many ${by}s to add up each: the rows are the largest of the ${by}s that cost most on days on which they ` +
            "were among the 500 of the largest cost. All sums are exact.\n",
        );
      if (cutSinceMs !== undefined)
        context.stderr.write(
          `There are more than 100,000 ${by === "tag" ? "tags of completions" : "completions"}: ` +
            `the sums are of completions that ended since ${new Date(cutSinceMs).toISOString()}.\n`,
        );
    }),
};

function readGroup(text: string): Group {
  const group = GROUPS.find((known) => known === text);
  if (group !== undefined) return group;
  throw new UsageError(`--by is one of ${GROUPS.join(", ")}`);
}

function readTop(text: string | undefined, by: Group): number {
  if (text === undefined) return DEFAULT_TOP;
  if (by === "day") throw new UsageError("--top has no effect on days; it is for the other groupings");
  const top = Number(text);
  if (Number.isInteger(top) && top >= 1 && top <= MAX_TOP) return top;
  throw new UsageError(`--top is a number of rows, 1 to ${MAX_TOP}`);
}

/** Label of a row: its group, its day, or null for all others together. */
function groupOf({ group, stepMs }: UsageRow): string | null {
  if (stepMs !== undefined) return new Date(stepMs).toISOString().slice(0, 10);
  return group === "" ? null : group;
}

function toJson(row: UsageRow): object {
  const { sums } = row;
  return {
    group: groupOf(row),
    name: row.name ?? null,
    completions: sums.completions,
    failed: sums.failed,
    partial: sums.partial,
    estimated: sums.estimated,
    prompt_tokens: sums.promptTokens,
    cached_tokens: sums.cachedTokens,
    completion_tokens: sums.completionTokens,
    reasoning_tokens: sums.reasoningTokens,
    image_tokens: sums.imageTokens,
    cost_micro_usd: sums.costMicroUsd,
    own_cost_micro_usd: sums.ownCostMicroUsd,
    refused: sums.refused,
  };
}

function toTable(by: Group, rows: readonly UsageRow[], sum: UsageSums): string {
  const hasOwn = sum.ownCostMicroUsd > 0;
  const columns = ["COMPLETIONS", "FAILED", "REFUSED", "ESTIMATED", "TOKENS IN", "CACHED", "TOKENS OUT", "USD"];
  const heading = [by.toUpperCase(), ...columns, ...(hasOwn ? ["OF IT OWN"] : [])];
  const cells = (group: string, sums: UsageSums): string[] => [
    group,
    ...[sums.completions, sums.failed, sums.refused, sums.estimated].map(String),
    ...[sums.promptTokens, sums.cachedTokens, sums.completionTokens].map(String),
    (sums.costMicroUsd / MICRO_USD).toFixed(6),
    ...(hasOwn ? [(sums.ownCostMicroUsd / MICRO_USD).toFixed(6)] : []),
  ];
  const lines = rows.map((row) =>
    cells(row.name === undefined ? (groupOf(row) ?? "all others") : `${row.group} (${row.name})`, row.sums),
  );
  const total = rows.length > 1 ? [cells("total", sum)] : [];
  return formatTable([heading, ...lines, ...total]);
}
