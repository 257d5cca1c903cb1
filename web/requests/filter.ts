import { useMemo } from "react";
import { useSearchParams } from "wouter";
import type { LogFilter } from "../api/requests.ts";

/** Query parameters by filter field. */
const NAMES = { accountId: "account", keyId: "key", model: "model", outcome: "outcome" } as const;
const TIMES = { sinceMs: "since", untilMs: "until" } as const;

export type FilterField = keyof typeof NAMES | keyof typeof TIMES;

/** Returns the filter from the URL, so that links can be shared, and a function to change it. */
export function useFilter(): readonly [LogFilter, (changes: Partial<Record<FilterField, string>>) => void] {
  const [search, setSearch] = useSearchParams();
  const filter = useMemo(() => readFilter(search), [search]);
  const change = (changes: Partial<Record<FilterField, string>>): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [field, value] of Object.entries(changes)) {
          const name = { ...NAMES, ...TIMES }[field as FilterField];
          if (value === "") after.delete(name);
          else after.set(name, value);
        }
        return after;
      },
      { replace: true },
    );
  return [filter, change];
}

/** Reads `?model=…&key=…&outcome=…&account=…&since=…&until=…`; times are ISO 8601 or Unix milliseconds. */
function readFilter(search: URLSearchParams): LogFilter {
  const texts = Object.entries(NAMES).map(([field, name]) => [field, search.get(name) ?? ""] as const);
  const times = Object.entries(TIMES).map(([field, name]) => [field, readTime(search.get(name) ?? "")] as const);
  const given = [...texts.filter(([, text]) => text !== ""), ...times.filter(([, ms]) => ms !== undefined)];
  return Object.fromEntries(given) as LogFilter;
}

function readTime(text: string): number | undefined {
  const ms = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}
