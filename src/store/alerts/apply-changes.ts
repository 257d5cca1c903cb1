import { randomUUID } from "node:crypto";
import type { Transaction } from "kysely";
import type { MessageKind } from "../../alerts/alert.ts";
import type { AlertChanges, Receiver } from "../../alerts/alert-store.ts";
import type { Schema } from "../schema.ts";

/** IDs of one statement. */
const BATCH = 500;

/** Applies the changes of an evaluation: as `AlertStore.apply`. */
export async function applyChanges(
  transaction: Transaction<Schema>,
  { nowMs, seen, open, resolve }: AlertChanges,
): Promise<{ readonly opened: number; readonly resolved: number }> {
  for (let from = 0; from < seen.length; from += BATCH)
    await transaction
      .updateTable("alerts")
      .set({ seen_at_ms: nowMs })
      .where("id", "in", seen.slice(from, from + BATCH))
      .where("resolved_at_ms", "is", null)
      .execute();
  let [opened, resolved] = [0, 0];
  const mutes = open.length === 0 ? new Map<string, Mute>() : await readMutes(transaction, nowMs);
  for (const { finding, receivers } of open) {
    const { accountId, ...facts } = finding;
    const mute = mutes.get(JSON.stringify([finding.rule, finding.subject]));
    const id = randomUUID();
    const row = { id, ...facts, account_id: accountId ?? null, opened_at_ms: nowMs, seen_at_ms: nowMs };
    const { numInsertedOrUpdatedRows } = await transaction
      .insertInto("alerts")
      .values({
        ...row,
        resolved_at_ms: null,
        acknowledged_at_ms: null,
        acknowledged_by: null,
        muted_until_ms: mute?.muted_until_ms ?? null,
        muted_by: mute?.muted_by ?? null,
      })
      .onConflict((on) => on.doNothing())
      .executeTakeFirst();
    if (numInsertedOrUpdatedRows !== 1n) continue;
    opened += 1;
    if (mute === undefined) await planMessages(transaction, { alertId: id, kind: "opened", receivers, nowMs });
  }
  for (const { alert, receivers } of resolve) {
    const { numUpdatedRows } = await transaction
      .updateTable("alerts")
      .set({ resolved_at_ms: nowMs })
      .where("id", "=", alert.id)
      .where("resolved_at_ms", "is", null)
      .where("seen_at_ms", "=", alert.seenAtMs)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) continue;
    resolved += 1;
    const isMuted = (alert.mutedUntilMs ?? 0) > nowMs;
    if (!isMuted) await planMessages(transaction, { alertId: alert.id, kind: "resolved", receivers, nowMs });
  }
  return { opened, resolved };
}

interface Mute {
  readonly muted_until_ms: number | null;
  readonly muted_by: string | null;
}

/** Mutes in force by rule and subject: they hold for the next alert, too. */
async function readMutes(transaction: Transaction<Schema>, nowMs: number): Promise<Map<string, Mute>> {
  const rows = await transaction
    .selectFrom("alerts")
    .select(["rule", "subject", "muted_until_ms", "muted_by"])
    .where("muted_until_ms", ">", nowMs)
    .orderBy("muted_until_ms")
    .execute();
  return new Map(rows.map((row) => [JSON.stringify([row.rule, row.subject]), row]));
}

interface Messages {
  readonly alertId: string;
  readonly kind: MessageKind;
  readonly receivers: readonly Receiver[];
  readonly nowMs: number;
}

async function planMessages(
  transaction: Transaction<Schema>,
  { alertId, kind, receivers, nowMs }: Messages,
): Promise<void> {
  if (receivers.length === 0) return;
  const rows = receivers.map(({ channelId, recipient }) => ({
    id: randomUUID(),
    alert_id: alertId,
    kind,
    channel_id: channelId ?? null,
    recipient,
    created_at_ms: nowMs,
    attempts: 0,
    next_at_ms: nowMs,
    sent_at_ms: null,
    problem: "",
  }));
  await transaction.insertInto("alert_deliveries").values(rows).execute();
}
