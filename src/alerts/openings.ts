import { type AlertRecord, type Finding, identityOf } from "./alert.ts";
import type { Openings } from "./alert-store.ts";

/** Time in which the opened alerts of an account are counted. */
export const OPENINGS_MS = 60 * 60_000;
/**
 * Alerts of an account that are opened in that time, so that an account that makes and removes keys does not cause thousands
 * of messages.
 */
const MAX_OPENED = 20;
/** Open alerts of an account, so that there is room for those of others. */
const MAX_OPEN_OF_ACCOUNT = 100;

/** Open alerts, and what was opened lately of each account with findings. */
export interface Opened {
  readonly open: readonly AlertRecord[];
  readonly openings: ReadonlyMap<string, Openings>;
}

/**
 * Leaves out new findings of accounts that have too many alerts, and adds one about them for each such account. New findings
 * of different accounts alternate, because one evaluation opens only some of them.
 */
export function limitOpenings(findings: readonly Finding[], { open, openings }: Opened): Finding[] {
  const known = new Set(open.map(identityOf));
  const openOf = Map.groupBy(open, ({ accountId }) => accountId);
  const inTurn: { readonly finding: Finding; readonly place: number }[] = [];
  const byAccount = Map.groupBy(findings, ({ accountId }) => accountId);
  for (const [accountId, all] of byAccount) {
    const isKnown = (finding: Finding): boolean => known.has(identityOf(finding));
    const fresh = all.filter((finding) => !isKnown(finding));
    inTurn.push(...all.filter(isKnown).map((finding) => ({ finding, place: 0 })));
    const { name = accountId ?? "", count = 0 } = openings.get(accountId ?? "") ?? {};
    const most = Math.min(MAX_OPENED - count, MAX_OPEN_OF_ACCOUNT - (openOf.get(accountId)?.length ?? 0));
    const room = accountId === undefined ? Infinity : Math.max(0, most);
    inTurn.push(...fresh.slice(0, room).map((finding, place) => ({ finding, place })));
    const [first] = fresh.slice(room);
    if (accountId === undefined || first === undefined) continue;
    inTurn.push({ finding: ofMore({ accountId, name, first, left: fresh.length - room }), place: 0 });
  }
  return inTurn.toSorted((one, other) => one.place - other.place).map(({ finding }) => finding);
}

interface More {
  readonly accountId: string;
  readonly name: string;
  readonly first: Finding;
  readonly left: number;
}

function ofMore({ accountId, name, first, left }: More): Finding {
  return {
    rule: "more_alerts",
    severity: "warning",
    subject: `account:${accountId}`,
    period: "",
    accountId,
    title: `The account “${name}” has more alerts than are sent`,
    detail: `Of an account ${MAX_OPENED} alerts are opened in an hour, and ${MAX_OPEN_OF_ACCOUNT} are open at most. ${left} or more are left out now, such as: ${first.title}.`,
  };
}
