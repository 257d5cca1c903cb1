import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { RequestOrder } from "../../gen/parley/console/v1/request_pb.js";
import type { LogFilter } from "../api/requests.ts";
import { ATTRIBUTION_FIELDS } from "../format/attribution.ts";
import { isRange, type Range, RANGES } from "../usage/period.ts";
import { MINUTE_MS } from "../usage/steps.ts";

/** Sort orders by name in the URL: the latest, or the highest value, first, or with the direction `asc` the reverse. */
export const ORDERS = {
  time: RequestOrder.UNSPECIFIED,
  tokens: RequestOrder.TOKENS,
  cost: RequestOrder.COST,
  duration: RequestOrder.DURATION,
  ttft: RequestOrder.FIRST_CONTENT,
} as const;

export type Order = keyof typeof ORDERS;

/** The direction in the URL. */
const ASCENDING = "asc";

/** Changes of the parameters that sort by an order. */
export function sortBy(order: Order, isAscending: boolean): Partial<Record<Parameter, string>> {
  return { order: order === "time" ? "" : order, direction: isAscending ? ASCENDING : "" };
}

const FILTERS = ["account", "key", "model", "outcome", ...ATTRIBUTION_FIELDS, "range", "since", "until"] as const;

/** Query parameters of the page, as in the URL. Empty: not set. */
const PARAMETERS = [...FILTERS, "order", "direction"] as const;

type Parameter = (typeof PARAMETERS)[number];

/** Changes that remove all filters, but not the order. */
export const NO_FILTERS: Partial<Record<Parameter, string>> = Object.fromEntries(FILTERS.map((name) => [name, ""]));

/** Filter and order of the log, as in the URL, so that links can be shared. */
export interface LogView {
  readonly filter: LogFilter;
  readonly order: Order;
  readonly isAscending: boolean;
  /** A period up to now. Undefined for any time, and for a custom period. */
  readonly range: Range | undefined;
  /** The query of this view, without the request that is shown beside it. */
  readonly query: string;
  /** Changes parameters; an empty text removes one. */
  readonly change: (changes: Partial<Record<Parameter, string>>) => void;
}

/**
 * Reads `?model=…&key=…&outcome=…&account=…&session=…&endUser=…&agent=…&tag=…&range=…&since=…&until=…&order=…&direction=…`; times are ISO 8601 or Unix milliseconds. A range is counted
 * from when it is chosen, so that the same list can be paged.
 */
export function useLogView(): LogView {
  const [search, setSearch] = useSearchParams();
  const query = new URLSearchParams(
    PARAMETERS.flatMap((name) => (search.get(name) ? [[name, search.get(name)!]] : [])),
  ).toString();
  const view = useMemo(() => readView(new URLSearchParams(query)), [query]);
  const change: LogView["change"] = (changes) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
          if (value === "") after.delete(name);
          else after.set(name, value);
        }
        after.delete("request");
        return after;
      },
      { replace: true },
    );
  return { ...view, query, change };
}

function readView(search: URLSearchParams): Pick<LogView, "filter" | "order" | "isAscending" | "range"> {
  const range = search.get("range") ?? "";
  const order = search.get("order") ?? "";
  const since = readTime(search.get("since"));
  const until = readTime(search.get("until"));
  const isRanged = isRange(range) && since === undefined && until === undefined;
  const sinceMs = isRanged ? Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - RANGES[range].lengthMs : since;
  const texts = {
    accountId: search.get("account"),
    keyId: search.get("key"),
    model: search.get("model"),
    outcome: search.get("outcome"),
    ...Object.fromEntries(ATTRIBUTION_FIELDS.map((field) => [field, search.get(field)])),
  };
  return {
    filter: Object.fromEntries([
      ...Object.entries(texts).filter(([, text]) => text !== null && text !== ""),
      ...(sinceMs === undefined ? [] : [["sinceMs", sinceMs]]),
      ...(until === undefined ? [] : [["untilMs", until]]),
    ]) as LogFilter,
    order: Object.hasOwn(ORDERS, order) ? (order as Order) : "time",
    isAscending: search.get("direction") === ASCENDING,
    range: isRanged ? range : undefined,
  };
}

function readTime(text: string | null): number | undefined {
  const ms = text !== null && /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text ?? "");
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}
