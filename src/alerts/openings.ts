import { type AlertRecord, type Finding, identityOf } from "./alert.ts";
import { MAX_OPEN, type Openings } from "./alert-store.ts";

/** Time in which the opened alerts of an account are counted. */
export const OPENINGS_MS = 60 * 60_000;
/**
 * Alerts of an account that are opened in that time, so that an account that makes and removes keys does not cause thousands
 * of messages.
 */
const MAX_OPENED = 20;
/** Open alerts of all accounts; the rest is for those of the installation, such as of its providers. */
const MAX_OPEN_OF_ALL = MAX_OPEN - 500;
/**
 * An account opens alerts while it has fewer than this part of the room that is left: 100 on its own, fewer the more others have, so that
 * there is room for another account however many have alerts.
 */
const PART_OF_ACCOUNT = 1 / 44;

/** Open alerts, and what was opened lately of each account with findings. */
export interface Opened {
  readonly open: readonly AlertRecord[];
  readonly openings: ReadonlyMap<string, Openings>;
}

/**
 * Leaves out new findings of accounts that have too many alerts, and adds one about them for each such account. One evaluation opens only
 * some: those of the installation come first, then those of the accounts of which the fewest were opened lately, alternately.
 */
export function limitOpenings(findings: readonly Finding[], { open, openings }: Opened): Finding[] {
  const known = new Set(open.map(identityOf));
  const openOf = Map.groupBy(open, ({ accountId }) => accountId);
  const inTurn: { readonly finding: Finding; readonly place: number }[] = [];
  const byAccount = Map.groupBy(findings, ({ accountId }) => accountId);
  const openOfAll = open.length - (openOf.get(undefined)?.length ?? 0);
  const mostOpen = Math.floor((MAX_OPEN_OF_ALL - openOfAll) * PART_OF_ACCOUNT);
  for (const [accountId, all] of byAccount) {
    const isKnown = (finding: Finding): boolean => known.has(identityOf(finding));
    const fresh = all.filter((finding) => !isKnown(finding));
    inTurn.push(...all.filter(isKnown).map((finding) => ({ finding, place: 0 })));
    if (accountId === undefined) {
      inTurn.push(...fresh.map((finding) => ({ finding, place: -1 })));
      continue;
    }
    const { name = accountId, count = 0 } = openings.get(accountId) ?? {};
    const own = (openOf.get(accountId) ?? []).filter(({ rule }) => rule !== "more_alerts");
    const room = Math.max(0, Math.min(MAX_OPENED - count, mostOpen - own.length));
    inTurn.push(...fresh.slice(0, room).map((finding, index) => ({ finding, place: count + index })));
    const [first] = fresh.slice(room);
    if (first === undefined) continue;
    const more = ofMore({ accountId, name, first, left: fresh.length - room });
    if (mostOpen > 0 || isKnown(more)) inTurn.push({ finding: more, place: count });
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
    detail: `Of an account ${MAX_OPENED} alerts are opened in an hour, and 100 are open at most, fewer where many accounts have alerts. ${left} or more are left out now, such as: ${first.title}.`,
  };
}
