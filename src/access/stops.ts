import { randomUUID } from "node:crypto";
import { MAX_NAME_CHARS } from "../core/attribution.ts";
import { Failure, invalidField } from "../core/failure.ts";
import type { Stop, StopKind } from "../core/stops.ts";
import type { Actor } from "./accounts.ts";
import { hashEmail } from "./address.ts";
import type { AuditFields } from "./audit-entry.ts";
import { toIso } from "./audit-fields.ts";
import { isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";

/** A stop with its author. */
export interface StoredStop extends Stop {
  readonly id: string;
  /** In Unix milliseconds. */
  readonly createdAtMs: number;
  readonly createdBy: string;
}

/** A stop of an account. */
export interface AccountStop extends StoredStop {
  readonly accountId: string;
}

/** The store of stops. Changes are announced to the account's keys. */
export interface StopStore {
  /** The stops of these accounts, or of all: of at most 1,000 accounts, expired ones too. */
  list(accountIds: readonly string[] | undefined): Promise<readonly AccountStop[]>;
  /**
   * Replaces the stops of an account, as they are at that moment. False for an unknown account. Throws what `change` throws, which may
   * be called more than once.
   */
  change(accountId: string, change: (before: readonly StoredStop[]) => readonly StoredStop[]): Promise<boolean>;
}

/** Dependencies of changes. */
export type StopContext = Pick<AccessContext, "clock" | "log"> & { readonly stops: StopStore };

/** Limit of an account's stops: the grant of each of its keys contains them. */
const MAX_STOPS = 100;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Range of a stop's length. */
const LENGTH_MS = [MINUTE_MS, 366 * DAY_MS] as const;

/** The stops that are in force, the latest first. */
export async function listStops(
  { stops, clock }: Pick<StopContext, "stops" | "clock">,
  accountIds: readonly string[] | undefined,
): Promise<readonly AccountStop[]> {
  const nowMs = clock.now();
  const found = (await stops.list(accountIds)).filter(({ untilMs }) => untilMs > nowMs);
  return found.toSorted((left, right) => right.createdAtMs - left.createdAtMs);
}

/** A stop to make, and its author. */
export interface NewStop {
  readonly accountId: string;
  readonly kind: StopKind;
  readonly value: string;
  /** Default: a day. */
  readonly lengthMs?: number | undefined;
  readonly actor: Actor & { readonly actorId: string };
}

/** Stops a session or an end user, in place of an earlier stop of the same. Throws `invalid_request`, and `rate_limited` for too many. */
export async function createStop(
  context: StopContext,
  { accountId, kind, value, lengthMs = DAY_MS, actor }: NewStop,
): Promise<AccountStop> {
  if (value === "" || value.length > MAX_NAME_CHARS || /\p{Cc}/u.test(value) || !value.isWellFormed())
    throw invalidField("value", `must have 1 to ${MAX_NAME_CHARS} characters, and no control characters`);
  const [least, most] = LENGTH_MS;
  if (!(lengthMs >= least && lengthMs <= most)) throw invalidField("duration", "must be one minute to 366 days");
  const createdAtMs = context.clock.now();
  const untilMs = createdAtMs + Math.round(lengthMs);
  const stop: StoredStop = { id: randomUUID(), kind, value, untilMs, createdAtMs, createdBy: actor.actorId };
  await change(context, accountId, (before) => {
    const others = before.filter(
      (other) => other.untilMs > createdAtMs && !(other.kind === kind && other.value === value),
    );
    if (others.length >= MAX_STOPS)
      throw new Failure("rate_limited", `This account has ${MAX_STOPS} stops in force; remove one first.`);
    return [...others, stop];
  });
  await context.log.record({
    action: "calls_stopped",
    accountId,
    ...actor,
    after: fieldsOf(stop),
    details: { stop: stop.id },
  });
  return { ...stop, accountId };
}

/** Ends a stop; false when there is none in force with this ID. Throws `invalid_request` for an unknown account. */
export async function removeStop(
  context: StopContext,
  { accountId, id, actor }: { readonly accountId: string; readonly id: string; readonly actor: Actor },
): Promise<boolean> {
  const nowMs = context.clock.now();
  let removed: StoredStop | undefined;
  await change(context, accountId, (before) => {
    removed = before.find((stop) => stop.id === id && stop.untilMs > nowMs);
    return before.filter((stop) => stop.id !== id && stop.untilMs > nowMs);
  });
  if (removed === undefined) return false;
  await context.log.record({
    action: "stop_removed",
    accountId,
    ...actor,
    before: fieldsOf(removed),
    details: { stop: id },
  });
  return true;
}

/** The audit log contains no e-mail addresses, and an end user's name may be one. */
function fieldsOf({ kind, value, untilMs }: Stop): AuditFields {
  return { [kind]: value.includes("@") ? hashEmail(value) : value, until: toIso(untilMs) };
}

async function change(
  { stops }: Pick<StopContext, "stops">,
  accountId: string,
  apply: (before: readonly StoredStop[]) => readonly StoredStop[],
): Promise<void> {
  if (!isId(accountId) || !(await stops.change(accountId, apply))) throw unknownId("account", accountId);
}
