import type { ChannelRecord, ChannelSecrets, DeliveryRecord } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";
import type { ChannelCipher } from "./channels.ts";
import { MailError, sendMail, type SmtpSettings } from "./mail.ts";
import { type Message, toMail, toSlackBody, toWebhookBody } from "./messages.ts";
import { post } from "./post.ts";
import { signatureHeaders } from "./webhook.ts";

/** Waiting times before each repetition of a sending that failed. */
export const RETRY_MS: readonly number[] = [10_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 10_800_000];
/**
 * E-mails to people that are claimed and sent together: all go to one server. Messages of a channel are claimed one by one.
 */
const MAILS = 10;
/** Time in which a channel's messages are begun, before all channels are read again. */
const ROUND_MS = 10_000;
/** Longer than any sending takes: then another process may send it. */
const CLAIM_MS = 120_000;

/** Ports of the sender. */
export interface SenderPorts {
  readonly store: AlertStore;
  readonly cipher: Pick<ChannelCipher, "open">;
  readonly smtp: () => SmtpSettings | undefined;
  readonly allowsPrivate: () => boolean;
  /** Address of the page of alerts. */
  readonly link: () => string | undefined;
}

/** The outcome of one sending. */
export interface Outcome {
  /** Empty: it was sent. */
  readonly problem: string;
  /** Whether it may succeed later. */
  readonly mayRetry: boolean;
}

const SENT: Outcome = { problem: "", mayRetry: false };
const final = (problem: string): Outcome => ({ problem, mayRetry: false });

/**
 * Sends the messages that are due, each channel's for itself, so that none waits for the receiver of another for longer than one sending
 * and ROUND_MS. Ends early when the signal aborts. Answers the number sent.
 */
export async function sendDue(ports: SenderPorts, signal: AbortSignal): Promise<number> {
  const due = await ports.store.dueChannels(await ports.store.nowMs());
  const sent = await Promise.all(due.map((channelId) => sendDueOf(ports, channelId, signal)));
  return sent.reduce((sum, count) => sum + count, 0);
}

/**
 * Sends the messages of one channel, or those to people, until none is left, a whole batch failed for now, or ROUND_MS is
 * over.
 */
async function sendDueOf(ports: SenderPorts, channelId: string | undefined, signal: AbortSignal): Promise<number> {
  const { store } = ports;
  const limit = channelId === undefined ? MAILS : 1;
  const startMs = await store.nowMs();
  let sent = 0;
  for (let nowMs = startMs; !signal.aborted && nowMs - startMs < ROUND_MS; nowMs = await store.nowMs()) {
    const due = await store.claimDeliveries({ channelId, nowMs, untilMs: nowMs + CLAIM_MS, limit });
    if (due.length === 0) break;
    const channels = new Map((await store.channels()).map((channel) => [channel.id, channel]));
    const outcomes = await Promise.all(due.map((delivery) => sendOne(ports, delivery, channels)));
    sent += outcomes.filter(({ problem }) => problem === "").length;
    if (outcomes.every(({ mayRetry }) => mayRetry)) break;
  }
  return sent;
}

/** Sends a test to a channel and returns its outcome. */
export async function sendTest(ports: SenderPorts, channel: ChannelRecord): Promise<Outcome> {
  const { store } = ports;
  const delivery = await store.beginTest(channel, await store.nowMs());
  return sendOne(ports, delivery, new Map([[channel.id, channel]]));
}

async function sendOne(
  ports: SenderPorts,
  delivery: DeliveryRecord,
  channels: ReadonlyMap<string, ChannelRecord>,
): Promise<Outcome> {
  const { store } = ports;
  const alert = delivery.alertId === undefined ? undefined : await store.find(delivery.alertId);
  const isGone = delivery.alertId !== undefined && alert === undefined;
  const atMs = await store.nowMs();
  const message = { id: delivery.id, kind: delivery.kind, alert, atMs, link: ports.link() };
  const outcome = isGone
    ? final("The alert is not kept any more.")
    : await send(ports, message, { delivery, channel: channels.get(delivery.channelId ?? "") });
  await store.endDelivery(delivery.id, toEnd(delivery, outcome, await store.nowMs()));
  return outcome;
}

/** Fields to store after an attempt; a failed one is repeated after a time that grows. */
export function toEnd(
  { kind, attempts }: Pick<DeliveryRecord, "kind" | "attempts">,
  { problem, mayRetry }: Outcome,
  nowMs: number,
): Pick<DeliveryRecord, "nextAtMs" | "sentAtMs" | "problem"> {
  if (problem === "") return { nextAtMs: undefined, sentAtMs: nowMs, problem };
  const waitMs = kind === "test" || !mayRetry ? undefined : RETRY_MS[attempts - 1];
  return { nextAtMs: waitMs === undefined ? undefined : nowMs + waitMs, sentAtMs: undefined, problem };
}

interface Target {
  readonly delivery: DeliveryRecord;
  readonly channel: ChannelRecord | undefined;
}

async function send(ports: SenderPorts, message: Message, { delivery, channel }: Target): Promise<Outcome> {
  if (delivery.channelId === undefined) return mail(ports, message, [delivery.recipient]);
  if (channel === undefined) return final("The channel was removed.");
  const secrets = ports.cipher.open(channel.sealed, channel.id);
  if (secrets === undefined)
    return { problem: "The channel cannot be decrypted: its encryption key has changed.", mayRetry: true };
  if (channel.kind === "email") return mail(ports, message, secrets.recipients ?? []);
  return postTo(ports, message, secrets);
}

async function mail({ smtp }: SenderPorts, message: Message, to: readonly string[]): Promise<Outcome> {
  const settings = smtp();
  if (settings === undefined) return final("No server for e-mail is configured (smtp).");
  try {
    await sendMail(settings, { to, id: message.id, ...toMail(message) });
    return SENT;
  } catch (error) {
    return { problem: (error as Error).message, mayRetry: !(error instanceof MailError && error.isFinal) };
  }
}

/** Statuses after which a repetition may succeed; other refusals are final. */
const LATER: ReadonlySet<number> = new Set([408, 409, 425, 429]);

async function postTo(
  { allowsPrivate }: SenderPorts,
  message: Message,
  { url = "", signingKey }: ChannelSecrets,
): Promise<Outcome> {
  const body = signingKey === undefined ? toSlackBody(message) : toWebhookBody(message);
  const headers = signingKey === undefined ? {} : signatureHeaders(body, { ...message, signingKey });
  try {
    const status = await post({ url, headers, body, allowsPrivate: allowsPrivate() });
    if (status >= 200 && status < 300) return SENT;
    if (status >= 300 && status < 400)
      return final(`The receiver redirects (status ${status}), which is not followed.`);
    return { problem: `The receiver answered with status ${status}.`, mayRetry: status >= 500 || LATER.has(status) };
  } catch (error) {
    return { problem: (error as Error).message, mayRetry: true };
  }
}
