import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { UsageGrouping, UsageStep } from "../../gen/parley/console/v1/usage_pb.js";
import type { UsagePieces } from "../api/usage.ts";

export const HOUR_MS = 60 * 60_000;
export const DAY_MS = 24 * HOUR_MS;

/** Selectable periods in days. */
export const RANGES = [1, 7, 30, 90, 365] as const;

/** Groupings by name in the URL. */
export const GROUPINGS = {
  none: UsageGrouping.UNSPECIFIED,
  model: UsageGrouping.MODEL,
  key: UsageGrouping.KEY,
  account: UsageGrouping.ACCOUNT,
  outcome: UsageGrouping.OUTCOME,
} as const;

export type Grouping = keyof typeof GROUPINGS;

/** Filter, period and grouping of the usage page, as in the URL. */
export interface View {
  readonly days: (typeof RANGES)[number];
  readonly by: Grouping;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly outcome: string;
}

/** Returns the view from the URL, and a function to change it. Default values are omitted from the URL. */
export function useView(): readonly [view: View, change: (changes: Partial<View>) => void] {
  const [search, setSearch] = useSearchParams();
  const days = RANGES.find((range) => String(range) === search.get("days")) ?? 30;
  const by = search.get("by") ?? "";
  const get = (name: string): string => search.get(name) ?? "";
  const view: View = {
    days,
    by: isGrouping(by) ? by : "model",
    account: get("account"),
    key: get("key"),
    model: get("model"),
    outcome: get("outcome"),
  };
  const change = (changes: Partial<View>): void => {
    const next = { ...view, ...changes };
    const defaults = { days: 30, by: "model", account: "", key: "", model: "", outcome: "" };
    const entries = Object.entries(next).filter(([name, value]) => value !== defaults[name as keyof View]);
    setSearch(new URLSearchParams(entries.map(([name, value]) => [name, String(value)])), { replace: true });
  };
  return [view, change];
}

/**
 * Returns the period of a view, up to the end of the current hour, and the query parameters. One day is the last 24
 * hours; more days are full UTC days including today.
 */
export function usePieces({ days, by, account, key, model, outcome }: View): UsagePieces & { grouping: Grouping } {
  const untilMs = endOfHour();
  const today = Math.floor((untilMs - 1) / DAY_MS) * DAY_MS;
  const sinceMs = days === 1 ? untilMs - DAY_MS : today - (days - 1) * DAY_MS;
  return useMemo(
    () => ({
      filter: { sinceMs, untilMs, accountId: account, keyId: key, model, outcome },
      by: GROUPINGS[by],
      grouping: by,
      lengthMs: days * DAY_MS,
      step: days === 1 ? UsageStep.HOUR : UsageStep.DAY,
    }),
    [sinceMs, untilMs, days, by, account, key, model, outcome],
  );
}

function endOfHour(): number {
  return Math.ceil((Date.now() + 1) / HOUR_MS) * HOUR_MS;
}

function isGrouping(name: string): name is Grouping {
  return Object.hasOwn(GROUPINGS, name);
}
