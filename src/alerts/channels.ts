import { randomUUID } from "node:crypto";
import type { Actor } from "../access/accounts.ts";
import { toEmail } from "../access/address.ts";
import type { AuditFields, AuditObject } from "../access/audit-entry.ts";
import { differenceOf } from "../access/audit-fields.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { checkName, unknownId } from "../access/checks.ts";
import type { Clock } from "../core/clock.ts";
import { invalidField } from "../core/failure.ts";
import type { ChannelFilter, ChannelKind, ChannelRecord, ChannelSecrets } from "./alert.ts";
import type { AlertStore } from "./alert-store.ts";
import { generateSigningKey } from "./webhook.ts";

const MAX_CHANNELS = 20;
const MAX_URL_CHARS = 2_048;
const MAX_RECIPIENTS = 20;

/** Encrypts and decrypts the secrets of channels. */
export interface ChannelCipher {
  seal(secrets: ChannelSecrets, channelId: string): string;
  /** Undefined for secrets that were encrypted with another key or for another channel. */
  open(sealed: string, channelId: string): ChannelSecrets | undefined;
}

/** Dependencies of channels. */
export interface ChannelContext {
  readonly store: AlertStore;
  readonly cipher: ChannelCipher;
  readonly clock: Clock;
  readonly log: AuditLog;
  /** Why an address may not be used; undefined when it may. */
  readonly addressProblem: (url: URL) => string | undefined;
  readonly hasMail: () => boolean;
  /** Why this process cannot encrypt secrets; undefined when it can. */
  readonly sealProblem: () => string | undefined;
}

/** A channel to create. */
export interface NewChannel extends ChannelFilter {
  readonly kind: ChannelKind;
  readonly name: string;
  /** Address of a webhook or of Slack. */
  readonly url: string;
  /** Of e-mail. */
  readonly recipients: readonly string[];
  readonly actor: Actor;
}

/** Creates a channel. The key of a webhook's signatures is returned once. Throws `invalid_request`. */
export async function createChannel(
  context: ChannelContext,
  { kind, name, url, recipients, rules, leastSeverity, actor }: NewChannel,
): Promise<{ readonly channel: ChannelRecord; readonly signingKey: string | undefined }> {
  const { store, cipher, clock, log } = context;
  const problem = context.sealProblem();
  if (problem !== undefined) throw invalidField("kind", problem);
  const checked = { kind, name: checkName(name.trim()), rules: [...new Set(rules)], leastSeverity };
  const signingKey = kind === "webhook" ? generateSigningKey() : undefined;
  const { target, secrets } = kind === "email" ? readRecipients(recipients, context) : readAddress(url, context);
  const id = `chan_${randomUUID().replaceAll("-", "")}`;
  const channel = {
    id,
    ...checked,
    target,
    sealed: cipher.seal({ ...secrets, ...(signingKey !== undefined && { signingKey }) }, id),
    createdAtMs: clock.now(),
    createdBy: actor.actorId,
  };
  if (!(await store.insertChannel(channel, MAX_CHANNELS)))
    throw invalidField("name", `there are ${MAX_CHANNELS} channels already; remove one first`);
  await log.record({ action: "alert_channel_created", ...actor, object: objectOf(id), after: fieldsOf(channel) });
  return { channel, signingKey };
}

/** The changes of a channel; its receiver and key stay. */
export interface ChannelChange extends ChannelFilter {
  readonly id: string;
  readonly name: string;
  readonly actor: Actor;
}

/** Changes which alerts a channel gets, and its name. Throws `invalid_request`. */
export async function changeChannel(
  { store, log }: Pick<ChannelContext, "store" | "log">,
  { id, name, rules, leastSeverity, actor }: ChannelChange,
): Promise<ChannelRecord> {
  const before = await findChannel(store, id);
  const changes = { name: checkName(name.trim()), rules: [...new Set(rules)], leastSeverity };
  if (!(await store.changeChannel(id, changes))) throw unknownId("channel", id);
  const after = { ...before, ...changes };
  const difference = differenceOf(fieldsOf(before), fieldsOf(after));
  if (Object.keys(difference.after).length > 0)
    await log.record({ action: "alert_channel_updated", ...actor, object: objectOf(id), ...difference });
  return after;
}

/** Removes a channel. Throws `invalid_request` for an unknown one. */
export async function removeChannel({ store, log }: ChannelContext, id: string, actor: Actor): Promise<void> {
  const channel = await findChannel(store, id);
  if (!(await store.removeChannel(id))) throw unknownId("channel", id);
  await log.record({ action: "alert_channel_removed", ...actor, object: objectOf(id), before: fieldsOf(channel) });
}

function objectOf(id: string): AuditObject {
  return { kind: "alert_channel", id };
}

/** The fields of a channel in the audit log: not its target, which may be e-mail addresses. */
function fieldsOf({ kind, name, rules, leastSeverity }: ChannelRecord): AuditFields {
  return { kind, name, rules: rules.length === 0 ? "all" : rules, least_severity: leastSeverity };
}

/** The channel with this ID. Throws `invalid_request` for an unknown one. */
export async function findChannel({ channels }: Pick<AlertStore, "channels">, id: string): Promise<ChannelRecord> {
  const found = (await channels()).find((channel) => channel.id === id);
  if (found === undefined) throw unknownId("channel", id);
  return found;
}

/** Fields with which a receiver is stored. */
interface Checked {
  /** For people, without secrets. */
  readonly target: string;
  readonly secrets: ChannelSecrets;
}

/** Reads the address of a receiver. Throws `invalid_request` for one that may not be used. */
export function readAddress(text: string, { addressProblem }: Pick<ChannelContext, "addressProblem">): Checked {
  const url = text.length > MAX_URL_CHARS ? null : URL.parse(text.trim());
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw invalidField("url", "must be an https address without user name and password");
  const problem = addressProblem(url);
  if (problem !== undefined) throw invalidField("url", problem);
  return { target: url.origin, secrets: { url: url.href } };
}

function readRecipients(texts: readonly string[], { hasMail }: Pick<ChannelContext, "hasMail">): Checked {
  if (!hasMail()) throw invalidField("kind", "e-mail needs the section smtp in the configuration file");
  if (texts.length === 0 || texts.length > MAX_RECIPIENTS)
    throw invalidField("recipients", `must be 1 to ${MAX_RECIPIENTS} e-mail addresses`);
  const recipients = [...new Set(texts.map((text) => toEmail(text, "recipients")))];
  return { target: recipients.join(", "), secrets: { recipients } };
}
