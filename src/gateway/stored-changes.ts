import type { Actor } from "../access/accounts.ts";
import type { AuditLog } from "../access/audit-log.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Config, RemoteProvider } from "../config/config.ts";
import { checkStored, type ConfigSource } from "../config/parse.ts";
import { KEY_FILE } from "../config/scalars.ts";
import { STORED_NAME } from "../config/stored.ts";
import { differencesOf, entriesOf, type StoredDocument, withDocument } from "../config/stored-document.ts";
import { overriddenEntries } from "../config/stored-entries.ts";
import type { Clock } from "../core/clock.ts";
import { Failure, type FieldViolation, invalidField } from "../core/failure.ts";
import type { ConfigurationStore, StoredRows } from "../store/configuration-store.ts";
import type { ProviderCredentialRow } from "../store/schema.ts";
import type { CredentialCipher } from "./account-credentials.ts";
import { toStored } from "./stored-watch.ts";

/** Dependencies of changes of the stored configuration. */
export interface StoredPorts {
  readonly store: ConfigurationStore;
  readonly cipher: Pick<CredentialCipher, "sealKeys" | "openKeys">;
  /** The configuration in force, and what it was read from. */
  readonly inForce: () => Config;
  readonly source: () => ConfigSource;
  readonly clock: Pick<Clock, "now">;
  readonly log: AuditLog;
}

/** Actor and reason of a change of the stored configuration. */
export interface ChangeFacts {
  /** The version that the change was made from. */
  readonly expected: number;
  readonly comment: string;
  /** Whether nothing is to be changed. */
  readonly validateOnly: boolean;
  /** Whether a change that removes a stored credential is refused. Default: false. */
  readonly keepsCredentials?: boolean;
  readonly actor: Actor;
}

/** A document with the credentials that are given beside it. */
interface NewDocument {
  readonly document: StoredDocument;
  /** API keys by provider. */
  readonly given: ReadonlyMap<string, readonly string[]>;
  /** Providers whose credentials are removed, beside those that are not in the document. */
  readonly removed: readonly string[];
  /** Path of the field of a problem, for the caller. */
  readonly fieldOf: (problem: {
    readonly path: readonly (string | number)[];
    readonly line: string;
    readonly atKey?: true;
  }) => string;
  /** Path of the field of a provider's credential, without which the change is refused; undefined: there is a warning. */
  readonly credentialFieldOf: (provider: string) => string | undefined;
}

/** Result of a change. */
export interface ChangeResult {
  /** Undefined when nothing has changed. */
  readonly version: number | undefined;
  readonly atMs: number;
  readonly comment: string;
  readonly warnings: readonly string[];
}

const MAX_COMMENT_CHARS = 500;
/** Characters of the names of changed entries in an entry of the audit log. */
const MAX_NAMES_CHARS = 1_000;

/** The latest version. Throws `permission_denied` where it is switched off, and `conflict` for another one than expected. */
export async function readLatest(
  { store, inForce }: Pick<StoredPorts, "store" | "inForce">,
  { expected, comment }: Pick<ChangeFacts, "expected" | "comment">,
): Promise<StoredRows | undefined> {
  if (!inForce().storedConfiguration.enabled)
    throw new Failure(
      "permission_denied",
      "The stored configuration is switched off: stored_configuration.enabled is false in the configuration file.",
    );
  if (comment.length > MAX_COMMENT_CHARS || comment.includes("\0"))
    throw invalidField("comment", `must have at most ${MAX_COMMENT_CHARS} characters, and none that is NUL`);
  const rows = await store.read();
  const latest = rows?.version.version ?? 0;
  if (latest !== expected) throw conflict(latest);
  return rows;
}

/**
 * Makes a version of a document. Throws `invalid_request` with all problems, `conflict` when there is a newer version, and `permission_denied` for
 * a credential that the caller must keep.
 */
export async function putDocument(
  ports: StoredPorts,
  rows: StoredRows | undefined,
  { document, given, removed, fieldOf, credentialFieldOf, ...facts }: NewDocument & ChangeFacts,
): Promise<ChangeResult> {
  const { store, cipher, clock } = ports;
  const source = ports.source();
  const before = toStored(rows, cipher);
  const names = new Set(document.entries.flatMap(({ section, name }) => (section === "providers" ? [name] : [])));
  const gone = before.credentials
    .map(({ provider }) => provider)
    .filter((provider) => !names.has(provider) || removed.includes(provider));
  if (facts.keepsCredentials === true && gone.length > 0)
    throw new Failure(
      "permission_denied",
      `This removes the stored credential of ${gone.join(", ")}, for which the permission credentials.write is needed.`,
    );
  const stored = withDocument(document, {
    version: (rows?.version.version ?? 0) + 1,
    credentials: [
      ...before.credentials.filter(({ provider }) => !given.has(provider) && !gone.includes(provider)),
      ...[...given].map(([provider, apiKeys]) => ({ provider, address: undefined, apiKeys })),
    ],
  });
  // The document in force is parsed already.
  const old = entriesOf(source.stored?.document === before.document ? source.stored : before);
  const { config, problems } = check(
    { ...source, stored },
    old.map(({ section, name }) => [section, name]),
  );
  const violations: FieldViolation[] = problems.map((problem) => ({
    field: fieldOf(problem),
    // The field contains the place.
    description: withoutPlace(problem.line),
  }));
  // The file is in force, so it is valid by itself.
  const ofFile = problems.find(({ line }) => beginningOf(line) === "");
  if (ofFile !== undefined && config !== undefined && isSimulated(ports.inForce()) && !isSimulated(config))
    violations.unshift({ field: fieldOf(ofFile), description: SIMULATOR_MISSING });
  const lacks = config === undefined ? [] : config.providers.flatMap((provider) => describeLack(provider));
  for (const { provider, text, isOwnFault } of lacks) {
    const field = isOwnFault ? credentialFieldOf(provider) : undefined;
    if (field !== undefined) violations.push({ field, description: text });
  }
  if (violations.length > 0 || config === undefined) throw invalid(violations);
  const warnings = [
    ...lacks.map(({ provider, text }) => `providers.${provider}: ${text}`),
    ...overriddenEntries(source, document.entries).map(
      ({ section, name }) =>
        `${section}.${name}: is not used, because the configuration file or the environment has it too`,
    ),
    ...(endsSimulator(ports.inForce(), config) ? [SIMULATOR_ENDS] : []),
  ];
  const nowMs = clock.now();
  const isSame = before.document === document.text && given.size === 0 && gone.length === 0;
  if (facts.validateOnly || isSame) return { version: undefined, atMs: nowMs, comment: facts.comment, warnings };
  const credentials = [...given].map(([name, apiKeys]) =>
    seal(ports, config, { name, apiKeys, nowMs, actor: facts.actor }),
  );
  const version = await store.insert({
    expected: facts.expected,
    version: { at_ms: nowMs, actor_id: facts.actor.actorId ?? null, comment: facts.comment, document: document.text },
    credentials,
    removed: gone,
  });
  if (version === undefined) throw conflict(await store.latest());
  const differences = differencesOf(old, document.entries);
  const changed = differences.map(({ section, name }) => `${section}.${name}`).join(", ");
  await recordVersion(ports.log, facts, {
    version,
    changed,
    set: credentials,
    gone,
    before: before.credentials.map(({ provider }) => provider),
  });
  return { version, atMs: nowMs, comment: facts.comment, warnings };
}

interface RecordedVersion {
  readonly version: number;
  /** Names of the changed entries. */
  readonly changed: string;
  /** Credentials that were set, and providers whose credentials are gone, and that had one before. */
  readonly set: readonly ProviderCredentialRow[];
  readonly gone: readonly string[];
  readonly before: readonly string[];
}

/** Records a version in the audit log, and each credential that was set or removed with it. */
async function recordVersion(
  log: AuditLog,
  { actor, expected, comment }: ChangeFacts,
  { version, changed, set, gone, before }: RecordedVersion,
): Promise<void> {
  await log.record({
    action: "configuration_changed",
    ...actor,
    object: { kind: "configuration", id: String(version) },
    before: { version: expected },
    after: { version },
    details: { changed: changed.slice(0, MAX_NAMES_CHARS), ...(comment !== "" && { comment }) },
  });
  for (const { provider, address } of set)
    await log.record({
      action: "provider_credential_set",
      ...actor,
      object: { kind: "provider", id: provider },
      before: { credential: before.includes(provider) ? "set" : null },
      after: { credential: "set" },
      details: { address },
    });
  for (const provider of gone)
    await log.record({
      action: "provider_credential_removed",
      ...actor,
      object: { kind: "provider", id: provider },
      before: { credential: "set" },
      after: { credential: null },
    });
}

const MAX_KEYS = 16;
const MAX_KEY_CHARS = 8_192;

/** Throws `invalid_request` for texts that are no API keys, and for names of files, which are the operator's to write. */
export function checkKeys(apiKeys: readonly string[], field: string): void {
  if (apiKeys.length > MAX_KEYS) throw invalidField(field, `must be at most ${MAX_KEYS}`);
  if (apiKeys.some((apiKey) => !/^[\x21-\x7e]+$/.test(apiKey) || apiKey.length > MAX_KEY_CHARS))
    throw invalidField(field, `must each be one word of 1 to ${MAX_KEY_CHARS} ASCII characters`);
  if (apiKeys.some((apiKey) => apiKey.startsWith(KEY_FILE)))
    throw invalidField(field, "must be the keys themselves; files are for the configuration file only");
}

/** As `checkStored`; a document that cannot be read is a problem of it. */
export function check(...asked: Parameters<typeof checkStored>): ReturnType<typeof checkStored> {
  try {
    return checkStored(...asked);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: undefined, problems: error.lines.map((line) => ({ path: [], text: line, line })) };
  }
}

/**
 * Returns the result of `read`. Throws `invalid_request` for a text that it cannot read; `fieldOf` gets line and column,
 * such as `:3:5`.
 */
export function reading<T>(fieldOf: (place: string) => string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const violations = error.lines.map((line) => {
      const [, place = "", description = line] = /^[^:]*(:\d+:\d+): (.*)$/s.exec(line) ?? [];
      return { field: fieldOf(place), description };
    });
    throw invalid(violations);
  }
}

/** Line and column at the beginning of a problem of the stored configuration: `:3:5`; empty for another problem. */
export function placeOf(line: string): string {
  return beginningOf(line).slice(STORED_NAME.length, -2);
}

/** A problem without its line and column. */
export function withoutPlace(line: string): string {
  return line.slice(beginningOf(line).length);
}

function beginningOf(line: string): string {
  return new RegExp(`^${STORED_NAME}:\\d+:\\d+: `).exec(line)?.[0] ?? "";
}

/** An `invalid_request` with all these fields. */
export function invalid(violations: readonly FieldViolation[]): Failure {
  const [first = { field: "document", description: "is not valid" }] = violations;
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : "";
  return new Failure("invalid_request", `${first.field}: ${first.description}${more}`, { violations });
}

function conflict(latest: number): Failure {
  return new Failure(
    "conflict",
    `The stored configuration has changed meanwhile: it has version ${latest}. Read it again, and repeat the change.`,
  );
}

/** Why a stored provider has no credential, and what to do. */
function describeLack(provider: Config["providers"][number]) {
  if (provider.simulated || provider.lack === undefined) return [];
  return [{ provider: provider.name, text: LACKS[provider.lack], isOwnFault: provider.lack !== "unreadable" }];
}

const SIMULATOR_KEPT = "simulator.enabled: true in the configuration file keeps it";
const SIMULATOR_ENDS = `the simulator answers only while nothing is stored, so that there are no models now; ${SIMULATOR_KEPT}`;
const SIMULATOR_MISSING = `the simulator, whose models the configuration file uses, answers only while nothing is stored; ${SIMULATOR_KEPT}`;

/** Whether a change removes the simulator's models and adds no others. */
function endsSimulator(before: Config, { providers, models, imports }: Config): boolean {
  const isServed = providers.length > 0 || models.length > 0 || imports.length > 0;
  return !isServed && isSimulated(before);
}

function isSimulated({ providers }: Config): boolean {
  return providers.some(({ simulated }) => simulated);
}

/** Texts about a missing credential, with the remedy. */
export const LACKS: Readonly<Record<NonNullable<RemoteProvider["lack"]>, string>> = {
  missing: "its credential is missing: set api_keys",
  unreadable:
    "its credential was encrypted with another key than account_credentials.encryption_key: give that key as account_credentials.previous_encryption_key, or set the credential again",
  "other address": "its credential was given for another address: set it again",
};

interface Sealed {
  readonly name: string;
  readonly apiKeys: readonly string[];
  readonly nowMs: number;
  readonly actor: Actor;
}

function seal(
  { cipher, inForce }: Pick<StoredPorts, "cipher" | "inForce">,
  config: Config,
  { name: provider, apiKeys, nowMs, actor }: Sealed,
): ProviderCredentialRow {
  const { accountCredentials, databaseUrl } = inForce();
  if (databaseUrl !== undefined && accountCredentials.encryptionKey === undefined)
    throw invalidField(
      "api_keys",
      "stored credentials need account_credentials.encryption_key in the configuration file of all replicas, because all need the same key",
    );
  const found = config.providers.find(({ name }) => name === provider);
  if (found === undefined || found.simulated) throw invalidField("api_keys", `${provider} is no stored provider`);
  const address = new URL(found.baseUrl).origin;
  return {
    provider,
    address,
    sealed: cipher.sealKeys(apiKeys, { provider, address }),
    keys: apiKeys.length,
    set_at_ms: nowMs,
    set_by: actor.actorId ?? null,
  };
}
