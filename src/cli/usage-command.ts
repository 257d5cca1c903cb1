import type { UsageGroup, UsageRow } from "../ledger/ledger-store.ts";
import { systemClock } from "../core/clock.ts";
import { CONFIG_FLAG, JSON_FLAG, UsageError, writeJson, type Command } from "./command.ts";
import { parseDuration } from "./duration.ts";
import { findAccountByIdOrEmail } from "./find-account.ts";
import { formatTable } from "./table.ts";
import { withStore } from "./with-store.ts";

const GROUPS = ["model", "key", "account", "day"] as const satisfies readonly UsageGroup[];
const DEFAULT_SINCE = "30d";
const MICRO_USD = 1_000_000;

export const usage: Command = {
  name: "usage",
  summary: "add up what the ledger says was used, and what it cost",
  positionals: [],
  flags: {
    by: { value: GROUPS.join("|"), help: "what it is added up by (default: model)" },
    since: {
      value: "WHEN",
      help: `a date in UTC such as 2026-11-01, or an age such as 24h (default: ${DEFAULT_SINCE})`,
    },
    until: { value: "WHEN", help: "the same, not included (default: now)" },
    account: { value: "A", help: "only of this account, by its ID or e-mail address" },
    key: { value: "ID", help: "only of this key" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store) => {
      const { flags, switches } = invocation;
      const nowMs = systemClock.now();
      const by = readGroup(flags["by"] ?? "model");
      const sinceMs = readMoment(flags["since"] ?? DEFAULT_SINCE, "--since", nowMs);
      const untilMs = flags["until"] === undefined ? nowMs + 1 : readMoment(flags["until"], "--until", nowMs);
      const accountId = flags["account"] && (await findAccountByIdOrEmail(store.accounts, flags["account"])).id;
      const keyId = flags["key"];
      if (keyId !== undefined && (await store.keys.find(keyId)) === undefined)
        throw new UsageError(`there is no key ${keyId}; parley keys list shows all`);
      const rows = await store.ledger.usage({ by, sinceMs, untilMs, accountId, keyId });
      if (switches.has("json")) {
        const since = new Date(sinceMs).toISOString();
        writeJson(context.stdout, { since, until: new Date(untilMs).toISOString(), by, usage: rows.map(toJson) });
      } else context.stdout.write(`${toTable(by, rows)}\n`);
    }),
};

function readGroup(text: string): UsageGroup {
  const group = GROUPS.find((known) => known === text);
  if (group !== undefined) return group;
  throw new UsageError(`--by is one of ${GROUPS.join(", ")}`);
}

function readMoment(text: string, flag: string, nowMs: number): number {
  const ageMs = parseDuration(text);
  if (ageMs !== undefined) return nowMs - ageMs;
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text) ? Date.parse(text) : NaN;
  if (!Number.isNaN(atMs)) return atMs;
  throw new UsageError(
    `${flag} is a date in UTC such as 2026-11-01 or 2026-11-01T12:00Z, or an age such as 24h or 30d`,
  );
}

function toJson(row: UsageRow): object {
  return {
    group: row.group,
    name: row.name ?? null,
    completions: row.completions,
    failed: row.failed,
    partial: row.partial,
    estimated: row.estimated,
    prompt_tokens: row.promptTokens,
    cached_tokens: row.cachedTokens,
    completion_tokens: row.completionTokens,
    reasoning_tokens: row.reasoningTokens,
    image_tokens: row.imageTokens,
    cost_micro_usd: row.costMicroUsd,
  };
}

function toTable(by: UsageGroup, rows: readonly UsageRow[]): string {
  const heading = [by.toUpperCase(), "COMPLETIONS", "FAILED", "ESTIMATED", "TOKENS IN", "CACHED", "TOKENS OUT", "USD"];
  const cells = (row: UsageRow, group: string): string[] => [
    group,
    ...[row.completions, row.failed, row.estimated, row.promptTokens, row.cachedTokens, row.completionTokens].map(
      String,
    ),
    (row.costMicroUsd / MICRO_USD).toFixed(6),
  ];
  const lines = rows.map((row) => cells(row, row.name === undefined ? row.group : `${row.group} (${row.name})`));
  const total = rows.length > 1 ? [cells(sum(rows), "total")] : [];
  return formatTable([heading, ...lines, ...total]);
}

function sum(rows: readonly UsageRow[]): UsageRow {
  const add = (field: keyof UsageRow): number => rows.reduce((total, row) => total + Number(row[field]), 0);
  return {
    group: "total",
    name: undefined,
    completions: add("completions"),
    failed: add("failed"),
    partial: add("partial"),
    estimated: add("estimated"),
    promptTokens: add("promptTokens"),
    cachedTokens: add("cachedTokens"),
    completionTokens: add("completionTokens"),
    reasoningTokens: add("reasoningTokens"),
    imageTokens: add("imageTokens"),
    costMicroUsd: add("costMicroUsd"),
  };
}
