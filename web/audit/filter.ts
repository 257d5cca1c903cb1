import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import type { AuditFilter } from "../api/audit.ts";
import { ACTOR_WORDS } from "./words.ts";

/** Conditions of the filter, as in the URL, so that links can be shared. An empty condition matches all entries. */
export interface Conditions {
  readonly action: string;
  /** An account's ID, or a kind of actor without an account. */
  readonly actor: string;
  readonly account: string;
  /** The ID of an object. */
  readonly object: string;
  /** `failed`, or empty for all. */
  readonly result: string;
  /** A key of RANGES. */
  readonly range: string;
}

const HOUR_MS = 60 * 60_000;

/** Time ranges with their names. */
export const RANGES: Readonly<Record<string, readonly [name: string, lengthMs: number]>> = {
  "1h": ["Last hour", HOUR_MS],
  "24h": ["Last 24 hours", 24 * HOUR_MS],
  "7d": ["Last 7 days", 7 * 24 * HOUR_MS],
  "30d": ["Last 30 days", 30 * 24 * HOUR_MS],
  "90d": ["Last 90 days", 90 * 24 * HOUR_MS],
};

const NAMES = ["action", "actor", "account", "object", "result", "range"] as const satisfies (keyof Conditions)[];

export const NO_CONDITIONS = Object.fromEntries(NAMES.map((name) => [name, ""])) as unknown as Conditions;

/** The conditions, and a function that changes some of them. */
export function useConditions(): readonly [Conditions, (changes: Partial<Conditions>) => void] {
  const [search, setSearch] = useSearchParams();
  const conditions = useMemo(
    () => Object.fromEntries(NAMES.map((name) => [name, search.get(name) ?? ""])) as unknown as Conditions,
    [search],
  );
  const change = (changes: Partial<Conditions>): void =>
    setSearch(
      (before) => {
        const given = NAMES.map((name) => [name, changes[name] ?? before.get(name) ?? ""]);
        return new URLSearchParams(given.filter(([, value]) => value !== ""));
      },
      { replace: true },
    );
  return [conditions, change];
}

/** The filter of conditions at this time. */
export function toFilter({ action, actor, account, object, result, range }: Conditions, nowMs: number): AuditFilter {
  const lengthMs = RANGES[range]?.[1];
  return {
    action,
    ...(actor in ACTOR_WORDS ? { actorKind: actor } : { actorId: actor }),
    accountId: account,
    objectId: object,
    failed: result === "failed",
    ...(lengthMs !== undefined && { since: timestampFromMs(nowMs - lengthMs) }),
  };
}
