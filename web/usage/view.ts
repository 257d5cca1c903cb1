import { useEffect, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { UsageGrain, UsageGrouping } from "../../gen/parley/console/v1/usage_pb.js";
import type { UsagePieces } from "../api/usage.ts";
import type { AttributionField } from "../format/attribution.ts";
import { inWholeUnits, isRange, periodBefore, periodOf, type Range, RANGES, readPeriod } from "./period.ts";
import { MINUTE_MS, type Step, stepFor } from "./steps.ts";

/** Groupings by name in the URL. */
const GROUPINGS = {
  none: UsageGrouping.UNSPECIFIED,
  model: UsageGrouping.MODEL,
  key: UsageGrouping.KEY,
  account: UsageGrouping.ACCOUNT,
  outcome: UsageGrouping.OUTCOME,
  team: UsageGrouping.TEAM,
  session: UsageGrouping.SESSION,
  endUser: UsageGrouping.END_USER,
  agent: UsageGrouping.AGENT,
  tag: UsageGrouping.TAG,
} as const;

export type Grouping = keyof typeof GROUPINGS;

/** Filter, period and grouping of the usage page, as in the URL. */
export interface View extends Readonly<Record<AttributionField, string>> {
  /** Not used with a custom period. */
  readonly range: Range;
  /** Ends of a custom period in ISO 8601; both empty for a range up to now. */
  readonly since: string;
  readonly until: string;
  readonly by: Grouping;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly outcome: string;
}

/** Changes that remove all filters, but neither the period nor the grouping. */
export const NO_FILTERS = {
  account: "",
  key: "",
  model: "",
  outcome: "",
  session: "",
  endUser: "",
  agent: "",
  tag: "",
} as const satisfies Partial<View>;

const DEFAULTS: View = { range: "30d", since: "", until: "", by: "model", ...NO_FILTERS };

/** Returns the view from the URL, and a function to change it. Default values are omitted from the URL. */
export function useView(): readonly [view: View, change: (changes: Partial<View>) => void] {
  const [search, setSearch] = useSearchParams();
  const get = (name: keyof View): string => search.get(name) ?? "";
  const hasPeriod = readPeriod(get("since"), get("until")) !== undefined;
  const view: View = {
    range: isRange(get("range")) ? (get("range") as Range) : DEFAULTS.range,
    since: hasPeriod ? get("since") : "",
    until: hasPeriod ? get("until") : "",
    by: isGrouping(get("by")) ? (get("by") as Grouping) : DEFAULTS.by,
    account: get("account"),
    key: get("key"),
    model: get("model"),
    outcome: get("outcome"),
    session: get("session"),
    endUser: get("endUser"),
    agent: get("agent"),
    tag: get("tag"),
  };
  const change = (changes: Partial<View>): void => {
    const entries = Object.entries({ ...view, ...changes }).filter(
      ([name, value]) => value !== DEFAULTS[name as keyof View],
    );
    setSearch(new URLSearchParams(entries), { replace: true });
  };
  return [view, change];
}

/** Parameters of the usage queries of a view. */
export interface ViewPieces extends UsagePieces {
  readonly grouping: Grouping;
  readonly step: Step;
  /** Length of the period: `30 days`. */
  readonly length: string;
}

/** Returns the query parameters of a view. The parameters of a period up to now change every minute. */
export function usePieces(view: View): ViewPieces {
  const { range, since, until, by, account, key, model, outcome, session, endUser, agent, tag } = view;
  const nowMs = useMinute();
  const own = readPeriod(since, until);
  const asked = own ?? periodOf(range, nowMs);
  const { sinceMs, untilMs, hasMinutes, isComparable, shiftMs } = inWholeUnits(asked, {
    nowMs,
    shiftMs: own === undefined ? RANGES[range].lengthMs : undefined,
  });
  const length = own === undefined ? RANGES[range].text : "period";
  return useMemo(() => {
    const grain = hasMinutes ? UsageGrain.MINUTE : UsageGrain.UNSPECIFIED;
    return {
      filter: { sinceMs, untilMs, grain, accountId: account, keyId: key, model, outcome, session, endUser, agent, tag },
      by: GROUPINGS[by],
      grouping: by,
      previous: isComparable ? periodBefore({ sinceMs, untilMs }, shiftMs) : undefined,
      length,
      step: stepFor(untilMs - sinceMs, { hasMinutes }),
    };
  }, [
    sinceMs,
    untilMs,
    hasMinutes,
    isComparable,
    shiftMs,
    length,
    by,
    account,
    key,
    model,
    outcome,
    session,
    endUser,
    agent,
    tag,
  ]);
}

/** Start of the current minute, which renders again when it ends. */
function useMinute(): number {
  const [nowMs, setNow] = useState(() => Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS);
  useEffect(() => {
    const timer = setTimeout(
      () => setNow(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS),
      nowMs + MINUTE_MS - Date.now(),
    );
    return () => clearTimeout(timer);
  }, [nowMs]);
  return nowMs;
}

function isGrouping(name: string): name is Grouping {
  return Object.hasOwn(GROUPINGS, name);
}
