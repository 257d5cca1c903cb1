import type { KeyRecord } from "../access/key-store.ts";
import { keyState, type CreatedKey } from "../access/keys.ts";
import { describeLimits, toLimitsJson } from "./limit-flags.ts";
import type { CliContext } from "./command.ts";
import { toIso } from "./iso-time.ts";

/** The secret alone goes to stdout, so that it can be piped. */
export function writeSecret({ stdout, stderr }: CliContext, { secret, record }: CreatedKey): void {
  stderr.write(`Created ${record.id} (${record.name}). Keep this key: it is not shown again.\n`);
  stdout.write(`${secret}\n`);
}

/** A new key as JSON, its secret included. */
export function toCreatedJson({ secret, record }: CreatedKey): object {
  const { id, name, ...rest } = toKeyJson(record);
  return { id, name, key: secret, ...rest };
}

/** A key as JSON, without its state. */
export function toKeyJson(record: KeyRecord) {
  return {
    id: record.id,
    name: record.name,
    display: record.display,
    account: record.accountId,
    models: record.models,
    capabilities: record.capabilities,
    limits: toLimitsJson(record.limits),
    limited_by_administrator: record.limitedByAdministrator,
    options: record.options,
    last_used_at: toIso(record.lastUsedAtMs),
    created_at: toIso(record.createdAtMs),
    expires_at: toIso(record.expiresAtMs),
    revoked_at: toIso(record.revokedAtMs),
    replaced_by: record.replacedBy ?? null,
  };
}

/** The heading of the table of keys. */
export const KEY_HEADING = [
  "ID",
  "NAME",
  "KEY",
  "STATE",
  "MODELS",
  "CAPABILITIES",
  "LIMITS",
  "CREATED",
  "EXPIRES",
  "LAST USED",
];

/** A key as a line of the table. */
export function toKeyRow(record: KeyRecord, nowMs: number): string[] {
  return [
    record.id,
    record.name,
    record.display,
    keyState(record, nowMs),
    record.models === "all" ? "all" : record.models.join(","),
    record.capabilities.join(","),
    describeLimits(record.limits),
    toIso(record.createdAtMs) ?? "",
    toIso(record.expiresAtMs) ?? "never",
    toIso(record.lastUsedAtMs) ?? "never",
  ];
}
