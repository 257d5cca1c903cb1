import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { isRecord } from "../config/document.ts";
import { NOTHING_STORED, type StoredConfiguration, UNREAD } from "../config/stored.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { StoredRows } from "../store/configuration-store.ts";
import { describeLocation, sqliteFile } from "../store/database.ts";
import { connectConfiguration } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CredentialCipher, credentialCipherOf } from "./account-credentials.ts";

/** Interval at which the number of the latest version is read: every replica follows a change within a second. */
const POLL_MS = 200;
/** Interval after an error. */
const RETRY_MS = 1_000;
/** Time until a version is tried again that could not be put in force. A newer one is not delayed. */
const APPLY_AGAIN_MS = 5_000;

/** File of the data directory with the last known rows, for a start without PostgreSQL. */
const LAST_KNOWN = "stored-configuration.json";

interface WatchPorts {
  readonly clock: Clock;
  readonly log: Logger;
}

/** The stored configuration of the database, as this program last read it. */
export interface StoredWatch {
  /** The rows that were read last, with the credentials that the keys of a configuration decrypt. */
  readBy(config: Config): StoredConfiguration;
  /** Number of the latest version in the database, as it last answered; undefined before it has. */
  latest(): number | undefined;
  /** Calls `changed` after each new version, and again until it resolves with whether that is in force now. */
  start(changed: () => Promise<boolean>): void;
  close(): Promise<void>;
}

/**
 * Reads the stored configuration, on a connection of its own. Never rejects: without a database that answers it is the last
 * one that this data directory knows, and nothing in a new database; a database that cannot be used fails at its migration.
 */
export async function openStoredWatch(config: Config, { clock, log }: WatchPorts): Promise<StoredWatch> {
  const connection = connectConfiguration(config);
  const keep = (read: StoredRows | undefined): Promise<void> =>
    keepLastKnown(config, read).catch((cause: unknown) =>
      log.warn({ file: LAST_KNOWN, cause: String(cause) }, "the stored configuration cannot be kept in data_dir"),
    );
  let rows: StoredRows | undefined;
  let isRead = true;
  let hasAnswered = true;
  try {
    if (config.databaseUrl !== undefined || existsSync(sqliteFile(config.dataDir))) {
      rows = await (await connection.store()).read();
      await keep(rows);
    }
  } catch (cause) {
    rows = await readLastKnown(config);
    isRead = rows !== undefined;
    hasAnswered = false;
    if (rows !== undefined)
      log.warn({ version: rows.version.version, cause: String(cause) }, "the last known stored configuration is used");
  }
  const ended = new AbortController();
  const versionOf = (read: StoredRows | undefined): number => read?.version.version ?? 0;
  // The start puts in force what was read.
  let applied = isRead ? versionOf(rows) : undefined;
  let latest: number | undefined = hasAnswered ? applied : undefined;
  let refused: { readonly version: number; readonly untilMs: number } | undefined;

  const look = async (changed: () => Promise<boolean>): Promise<void> => {
    const store = await connection.store();
    latest = await store.latest();
    if (latest === applied || (latest === refused?.version && clock.monotonic() < refused.untilMs)) return;
    rows = await store.read();
    isRead = true;
    await keep(rows);
    const version = versionOf(rows);
    if (await changed()) applied = version;
    else refused = { version, untilMs: clock.monotonic() + APPLY_AGAIN_MS };
  };
  const repeat = async (changed: () => Promise<boolean>): Promise<void> => {
    let isFailing = false;
    while (!ended.signal.aborted) {
      await sleep(clock, isFailing ? RETRY_MS : POLL_MS, ended.signal);
      if (ended.signal.aborted) return;
      try {
        await look(changed);
        isFailing = false;
      } catch (cause) {
        if (!isFailing)
          log.warn({ cause: String(cause) }, "the stored configuration cannot be read; it is tried again");
        isFailing = true;
      }
    }
  };
  let repeating: Promise<void> | undefined;
  return {
    // The key of the data directory is made for accounts' credentials later, when the directory is there.
    readBy: (by) => (isRead ? toStored(rows, credentialCipherOf({ ...by, providers: [] })) : UNREAD),
    latest: () => latest,
    start(changed) {
      repeating = repeat(changed);
    },
    async close() {
      ended.abort();
      await repeating;
      await connection.close().catch(() => undefined);
    },
  };
}

/** The rows with the credentials that the cipher can decrypt. A key that cannot be read decrypts none: a start does not need it. */
export function toStored(
  rows: StoredRows | undefined,
  { openKeys }: Pick<CredentialCipher, "openKeys">,
): StoredConfiguration {
  if (rows === undefined) return NOTHING_STORED;
  const open: typeof openKeys = (sealed, place) => {
    try {
      return openKeys(sealed, place);
    } catch {
      return undefined;
    }
  };
  return {
    version: rows.version.version,
    document: rows.version.document,
    credentials: rows.credentials.map(({ provider, address, sealed }) => ({
      provider,
      address,
      apiKeys: open(sealed, { provider, address }),
    })),
  };
}

interface LastKnown {
  /** Another database has another configuration. */
  readonly database: string;
  readonly rows: StoredRows;
}

/** SQLite is in the data directory itself. */
async function readLastKnown(config: Config): Promise<StoredRows | undefined> {
  if (config.databaseUrl === undefined) return undefined;
  try {
    const known: unknown = JSON.parse(await readFile(join(config.dataDir, LAST_KNOWN), "utf8"));
    return isLastKnown(known) && known.database === describeLocation(config) ? known.rows : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a file's value is what `keepLastKnown` writes, in what is read of it. */
function isLastKnown(value: unknown): value is LastKnown {
  if (!isRecord(value) || !isRecord(value["rows"])) return false;
  const { version, credentials } = value["rows"];
  const isVersion =
    isRecord(version) && Number.isSafeInteger(version["version"]) && typeof version["document"] === "string";
  const isCredential = (one: unknown): boolean =>
    isRecord(one) && ["provider", "address", "sealed"].every((key) => typeof one[key] === "string");
  return isVersion && Array.isArray(credentials) && credentials.every(isCredential);
}

async function keepLastKnown(config: Config, rows: StoredRows | undefined): Promise<void> {
  if (config.databaseUrl === undefined || config.outage.serveMs === 0) return;
  const file = join(config.dataDir, LAST_KNOWN);
  if (rows === undefined) return rm(file, { force: true });
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
  const unfinished = `${file}.${process.pid}`;
  const known: LastKnown = { database: describeLocation(config), rows };
  await writeFile(unfinished, JSON.stringify(known), { mode: 0o600, flush: true });
  await rename(unfinished, file);
}
