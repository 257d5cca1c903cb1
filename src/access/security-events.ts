import type { ObjectKind, UnchainedEntry } from "./audit-entry.ts";

/** A security event, as programs before the audit log recorded them. */
export interface SecurityEvent {
  readonly atMs: number;
  readonly type: string;
  /** Undefined without a session, and for the command line. */
  readonly actorId: string | undefined;
  readonly accountId: string | undefined;
  /** Undefined for the command line. */
  readonly network: string | undefined;
  readonly details: Readonly<Record<string, string>>;
}

/** The detail that names the object, by its kind. */
const OBJECT_DETAILS: readonly (readonly [detail: string, kind: ObjectKind])[] = [
  ["key_id", "key"],
  ["invitation_id", "invitation"],
  ["version", "configuration"],
];

/** The entry of the audit log for a security event. */
export function fromSecurityEvent({ atMs, type, actorId, accountId, network, details }: SecurityEvent): UnchainedEntry {
  const named = OBJECT_DETAILS.find(([detail]) => details[detail] !== undefined);
  const isOfProvider = type.startsWith("provider_") && details["provider"] !== undefined;
  const own = accountId === undefined ? undefined : { kind: "account" as const, id: accountId };
  const object = named === undefined ? own : { kind: named[1], id: details[named[0]]! };
  const { from, to, ...others } = Object.fromEntries(
    Object.entries(details).filter(([name]) => name !== named?.[0] && !(isOfProvider && name === "provider")),
  );
  return {
    atMs,
    action: type,
    actor:
      actorId === undefined
        ? { kind: network === undefined ? "command_line" : "nobody", id: undefined }
        : { kind: "account", id: actorId },
    network,
    client: undefined,
    object: isOfProvider ? { kind: "provider", id: details["provider"]! } : object,
    accountId,
    result: type.endsWith("_failed") ? "failed" : "done",
    before: from === undefined ? undefined : JSON.stringify({ role: from }),
    after: to === undefined ? undefined : JSON.stringify({ role: to }),
    details: Object.keys(others).length === 0 ? undefined : JSON.stringify(others),
  };
}
