import { randomUUID } from "node:crypto";
import type { Actor } from "../access/accounts.ts";
import type { AuditEntry } from "../access/audit-entry.ts";
import { toAuditJson } from "../access/audit-export.ts";
import type { AuditStore } from "../access/audit-store.ts";
import { isId, unknownId } from "../access/checks.ts";
import { invalidField } from "../core/failure.ts";
import type { AuditStreamRecord, AuditStreamStore } from "./audit-stream-store.ts";
import { type ChannelContext, readAddress } from "./channels.ts";
import { post } from "./post.ts";
import { generateSigningKey, signatureHeaders } from "./webhook.ts";

const MAX_STREAMS = 5;
/** Entries of one message, and characters of their JSON: one entry alone may have more. */
const MAX_ENTRIES = 100;
const MAX_CHARS = 500_000;
/** Longer than any sending takes: then another process may send. */
const CLAIM_MS = 60_000;
/** Time in which messages to a receiver are begun, before all receivers are read again. */
const ROUND_MS = 10_000;
/** Waiting times after failures; the last one repeats, without an end. */
const RETRY_MS = [5_000, 15_000, 60_000, 300_000];

/** Dependencies of receivers of the audit log. */
export interface AuditStreamContext extends Pick<
  ChannelContext,
  "cipher" | "clock" | "log" | "addressProblem" | "sealProblem"
> {
  readonly streams: AuditStreamStore;
}

/**
 * Adds a receiver of all entries from now on, that of its own addition first. The key of its signatures is returned once. Throws
 * `invalid_request`.
 */
export async function createStream(
  { streams, cipher, clock, log, ...context }: AuditStreamContext,
  url: string,
  actor: Actor,
): Promise<{ readonly stream: AuditStreamRecord; readonly signingKey: string }> {
  const problem = context.sealProblem();
  if (problem !== undefined) throw invalidField("url", problem);
  const { target, secrets } = readAddress(url, context);
  const id = `astr_${randomUUID().replaceAll("-", "")}`;
  const signingKey = generateSigningKey();
  const sealed = cipher.seal({ ...secrets, signingKey }, id);
  const facts = { id, target, sealed, createdAtMs: clock.now(), createdBy: actor.actorId };
  const stream = await streams.insertStream(facts, MAX_STREAMS);
  if (stream === undefined) throw invalidField("url", `there are ${MAX_STREAMS} receivers already; remove one first`);
  await log.record({
    action: "audit_stream_created",
    ...actor,
    object: { kind: "audit_stream", id },
    after: { target },
  });
  return { stream, signingKey };
}

/** Removes a receiver. Throws `invalid_request` for an unknown one. */
export async function removeStream(
  { streams, log }: Pick<AuditStreamContext, "streams" | "log">,
  id: string,
  actor: Actor,
): Promise<void> {
  const removed = isId(id) ? await streams.removeStream(id) : undefined;
  if (removed === undefined) throw unknownId("receiver", id);
  const before = { target: removed.target };
  await log.record({ action: "audit_stream_removed", ...actor, object: { kind: "audit_stream", id }, before });
}

/** Ports of the sending. */
export interface StreamSenderPorts {
  readonly streams: AuditStreamStore;
  readonly audit: Pick<AuditStore, "follow">;
  readonly cipher: Pick<ChannelContext["cipher"], "open">;
  readonly allowsPrivate: () => boolean;
  /** Unix time of the clock that all processes share. */
  readonly nowMs: () => Promise<number>;
}

/**
 * Sends the audit log to the receivers that are due, in order, to each until it has accepted all, it fails, ROUND_MS is over or the signal
 * aborts: a receiver waits for a slow one for no longer than ROUND_MS and one sending. Each receiver gets its entries from one process at a
 * time. Answers the number of entries that were accepted.
 */
export async function sendStreams(ports: StreamSenderPorts, signal: AbortSignal): Promise<number> {
  const by = randomUUID();
  const nowMs = await ports.nowMs();
  const claimed = await ports.streams.claimStreams({ nowMs, untilMs: nowMs + CLAIM_MS, by });
  const endMs = nowMs + ROUND_MS;
  const sent = await Promise.all(claimed.map((stream) => sendOne(ports, { stream, by, endMs }, signal)));
  return sent.reduce((sum, count) => sum + count, 0);
}

interface Sending {
  readonly stream: AuditStreamRecord;
  readonly by: string;
  /** No message begins later. */
  readonly endMs: number;
}

async function sendOne(ports: StreamSenderPorts, { stream, by, endMs }: Sending, signal: AbortSignal): Promise<number> {
  const { streams, audit, nowMs } = ports;
  let { sequence } = stream;
  let atMs = 0;
  while (!signal.aborted && atMs < endMs) {
    const batch = toBatch(await audit.follow({ sequence, limit: MAX_ENTRIES }));
    const last = batch.entries.at(-1);
    if (last === undefined) break;
    const problem = await send(ports, stream, batch);
    atMs = await nowMs();
    if (problem !== "") {
      const failures = sequence === stream.sequence ? stream.failures + 1 : 1;
      const nextAtMs = atMs + RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]!;
      await streams.noteProgress(stream.id, by, { claimedUntilMs: 0, failures, nextAtMs, problem });
      return sequence - stream.sequence;
    }
    const progress = { sequence: last.sequence, failures: 0, nextAtMs: 0, sentAtMs: atMs, problem: "" };
    const isOwn = await streams.noteProgress(stream.id, by, { ...progress, claimedUntilMs: atMs + CLAIM_MS });
    sequence = last.sequence;
    if (!isOwn) return sequence - stream.sequence;
  }
  await streams.noteProgress(stream.id, by, { claimedUntilMs: 0 });
  return sequence - stream.sequence;
}

interface Batch {
  readonly entries: readonly AuditEntry[];
  /** Their JSON. */
  readonly texts: readonly string[];
}

/** The first entries that fit into a message. */
function toBatch(entries: readonly AuditEntry[]): Batch {
  const texts: string[] = [];
  let chars = 0;
  for (const entry of entries) {
    const text = JSON.stringify(toAuditJson(entry));
    chars += text.length;
    if (texts.length > 0 && chars > MAX_CHARS) break;
    texts.push(text);
  }
  return { entries: entries.slice(0, texts.length), texts };
}

/** Sends a message. Returns why it failed; empty when the receiver has accepted it. */
async function send(
  { cipher, allowsPrivate, nowMs }: StreamSenderPorts,
  { id: streamId, sealed }: AuditStreamRecord,
  { entries, texts }: Batch,
): Promise<string> {
  const secrets = cipher.open(sealed, streamId);
  if (secrets?.url === undefined || secrets.signingKey === undefined)
    return "The receiver's address cannot be decrypted: its encryption key has changed.";
  const { url, signingKey } = secrets;
  const id = `${streamId}_${entries[0]!.sequence}_${entries.at(-1)!.sequence}`;
  const atMs = await nowMs();
  const head = { type: "audit.entries", id, timestamp: new Date(atMs).toISOString() };
  const body = `${JSON.stringify(head).slice(0, -1)},"data":{"entries":[${texts.join(",")}]}}`;
  const headers = signatureHeaders(body, { id, atMs, signingKey });
  try {
    const status = await post({ url, headers, body, allowsPrivate: allowsPrivate() });
    return status >= 200 && status < 300 ? "" : `The receiver answered with status ${status}.`;
  } catch (error) {
    return (error as Error).message;
  }
}
