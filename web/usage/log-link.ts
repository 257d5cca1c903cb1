import type { UsageFilter } from "../api/usage.ts";
import { NO_CALLER } from "../format/callers.ts";
import { PATHS } from "../paths.ts";
import { UNKNOWN_MODEL } from "./names.ts";
import type { Grouping } from "./view.ts";

/** Returns the path of the request log for the requests of a sum. */
export function logLink(filter: UsageFilter): string {
  const { sinceMs, untilMs, accountId, keyId, model, outcome, session, endUser, agent, tag } = filter;
  const [since, until] = [sinceMs, untilMs].map((atMs) => new Date(atMs).toISOString());
  const shared = { model, outcome, session, endUser, agent, tag };
  const all = { account: accountId, key: keyId, ...shared, since: since!, until: until! };
  const given = Object.entries(all).filter(([, value]) => value !== "");
  return `${PATHS.requests}?${new URLSearchParams(given).toString()}`;
}

/** Narrows a filter to one group. Undefined for groups that the log has no filter for, and without grouping. */
export function narrow(filter: UsageFilter, by: Grouping, group: string): UsageFilter | undefined {
  if (by === "none" || group === "" || (by === "model" && group === UNKNOWN_MODEL)) return undefined;
  // Requests without a valid key have no account: the log filters them by key.
  if (group === NO_CALLER && (by === "key" || by === "account")) return { ...filter, keyId: NO_CALLER };
  const fields = { key: "keyId", account: "accountId", team: "accountId" } as const;
  return { ...filter, [by in fields ? fields[by as keyof typeof fields] : by]: group };
}
