import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Authenticator } from "../access/key-cache.ts";
import type { ConfirmedKey } from "../access/known-keys.ts";
import type { Config } from "../config/config.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { type Cipher, createCipher, keyOfDirectory, readKey } from "../store/cipher.ts";
import { describeLocation } from "../store/database.ts";
import type { Logger } from "../telemetry/logger.ts";

/** File of the encryption key in the data directory. */
const KEY_FILE = "known-keys.key";
/** Files of known keys, one for each worker. */
const FILE = /^known-keys-(\d+)\.sealed$/;
/** Content of another version is not read. */
const VERSION = "1";
/** Keys of a file, those that were confirmed last, and bytes of their text. */
const MAX_KEYS = 10_000;
const MAX_BYTES = 32 * 2 ** 20;
/** Base64 of that. */
const MAX_FILE_BYTES = 44 * 2 ** 20;
/** Keys that are encoded without a pause. */
const KEYS_PER_TURN = 500;
/** Interval of writes after which other keys are known than before, and of those that only have later times. */
const CHANGED_MS = 2_000;
const UNCHANGED_MS = 60_000;

/** What a process needs to serve without its database. */
export interface KnownBefore {
  readonly keys: readonly ConfirmedKey[];
  /** The secret of the seal of providers' state. */
  readonly stateSecret: Buffer;
  /** Number of replicas, as last seen. */
  readonly replicas: number;
}

interface Content {
  readonly stateSecret: string;
  readonly replicas: number;
  readonly keys: readonly StoredKey[];
}

/** A key as JSON has it. */
type StoredKey = Omit<ConfirmedKey, "grant"> & {
  readonly grant: Omit<ConfirmedKey["grant"], "routing"> & { readonly routing?: StoredRouting | undefined };
};

type Routing = NonNullable<ConfirmedKey["grant"]["routing"]>;

interface StoredRouting extends Pick<Routing, "aliases"> {
  readonly credentials: readonly (readonly [
    string,
    Routing["credentials"] extends ReadonlyMap<string, infer V> ? V : never,
  ])[];
}

interface KeyFilePorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Number of this worker among those of the data directory, from 1; 0 for a program without workers. */
  readonly worker: number;
}

/**
 * The keys that a process knows, in a file of the data directory, encrypted and authenticated, for the next process that starts while
 * the database is unavailable. Bound to the database's address: another one has other keys.
 */
export class KeyFile {
  readonly #config: Config;
  readonly #ports: KeyFilePorts;
  #cipher: Cipher | undefined;
  readonly #startedAtMs: number;
  #writtenAtMs: number | undefined;

  constructor(config: Config, ports: KeyFilePorts) {
    this.#config = config;
    this.#ports = ports;
    this.#startedAtMs = ports.clock.now();
  }

  /** Time since the last write of this process, or since its start. */
  get ageMs(): number {
    return this.#ports.clock.now() - (this.#writtenAtMs ?? this.#startedAtMs);
  }

  /** Reads the files of all workers. Undefined without a readable one that has a key which may still be used. */
  async read(): Promise<KnownBefore | undefined> {
    const { dataDir } = this.#config;
    const names = await readdir(dataDir).catch(() => []);
    const contents: Content[] = [];
    for (const name of names.filter((each) => FILE.test(each))) {
      const content = await this.#readOne(join(dataDir, name)).catch(() => undefined);
      if (content !== undefined) contents.push(content);
      else
        this.#ports.log.warn(
          { file: name },
          "the file of known keys cannot be read: it is of another key, database or version",
        );
    }
    const first = contents[0];
    const sinceMs = this.#ports.clock.now() - this.#config.outage.serveMs;
    const keys = contents.flatMap((content) => content.keys).filter(({ confirmedAtMs }) => confirmedAtMs >= sinceMs);
    if (first === undefined || keys.length === 0) return undefined;
    return {
      keys: keys.toSorted((one, other) => other.confirmedAtMs - one.confirmedAtMs).map(fromStored),
      stateSecret: Buffer.from(first.stateSecret, "base64"),
      replicas: Math.max(...contents.map(({ replicas }) => replicas)),
    };
  }

  /**
   * Writes the file again when other keys are known, or their times are a minute old, until it is stopped. The returned function does
   * so once more.
   */
  keep(
    keys: Pick<Authenticator, "confirmedKeys" | "changes">,
    facts: { readonly stateSecret: Buffer; readonly replicas: () => number },
  ): () => Promise<void> {
    const { clock, log } = this.#ports;
    const stopped = new AbortController();
    let isFailing = false;
    let changes = -1;
    const write = async (): Promise<void> => {
      changes = keys.changes();
      try {
        await this.#write({ ...facts, replicas: facts.replicas(), keys: await keys.confirmedKeys(MAX_KEYS) });
        isFailing = false;
      } catch (cause) {
        if (!isFailing) log.error({ cause: String(cause) }, "known keys cannot be written to data_dir");
        isFailing = true;
      }
    };
    const repeat = async (): Promise<void> => {
      let dueMs = clock.monotonic();
      for (;;) {
        await sleep(clock, CHANGED_MS, stopped.signal);
        if (stopped.signal.aborted) return;
        if (changes === keys.changes() && clock.monotonic() < dueMs) continue;
        dueMs = clock.monotonic() + Math.min(UNCHANGED_MS, this.#config.outage.serveMs / 4);
        await write();
      }
    };
    const repeating = repeat();
    return async () => {
      stopped.abort();
      await repeating;
      await write();
    };
  }

  async #readOne(path: string): Promise<Content | undefined> {
    if ((await stat(path)).size > MAX_FILE_BYTES) return undefined;
    const text = this.#seal().open(await readFile(path, "utf8"), this.#boundTo());
    return text && (JSON.parse(text.toString()) as Content);
  }

  async #write({ keys, stateSecret, replicas }: KnownBefore): Promise<void> {
    const { dataDir } = this.#config;
    const texts: string[] = [];
    let bytes = 0;
    for (const [index, key] of keys.entries()) {
      if (index % KEYS_PER_TURN === KEYS_PER_TURN - 1) await nextTurn();
      const text = JSON.stringify(toStored(key));
      bytes += Buffer.byteLength(text) + 1;
      if (bytes > MAX_BYTES) break;
      texts.push(text);
    }
    const head = JSON.stringify({ stateSecret: stateSecret.toString("base64"), replicas, keys: [] } satisfies Content);
    const content = Buffer.from(`${head.slice(0, -2)}${texts.join()}]}`);
    const path = join(dataDir, `known-keys-${this.#ports.worker}.sealed`);
    const unfinished = `${path}.part`;
    try {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      const file = await open(unfinished, "w", 0o600);
      try {
        await file.writeFile(this.#seal().seal(content, this.#boundTo()));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
    if (this.#writtenAtMs === undefined && this.#ports.worker <= 1) await this.#removeUnused();
    this.#writtenAtMs = this.#ports.clock.now();
  }

  /** Removes the files that no process writes any more, such as after a start with fewer workers: revoked keys would stay in them. */
  async #removeUnused(): Promise<void> {
    const { dataDir, workers } = this.#config;
    const [first, last] = this.#ports.worker === 0 ? [0, 0] : [1, workers];
    for (const name of await readdir(dataDir)) {
      const number = Number(FILE.exec(name)?.[1] ?? first);
      if (number < first || number > last) await rm(join(dataDir, name), { force: true });
    }
  }

  #seal(): Cipher {
    const { dataDir, outage } = this.#config;
    this.#cipher ??= createCipher(
      outage.encryptionKey === undefined ? keyOfDirectory(dataDir, KEY_FILE) : readKey(outage.encryptionKey),
    );
    return this.#cipher;
  }

  #boundTo(): string[] {
    return ["known-keys", VERSION, describeLocation(this.#config)];
  }
}

function toStored({ grant: { record, accountLimits, accountDisabled, routing }, ...key }: ConfirmedKey): StoredKey {
  // The fields of a grant: records of the store have more.
  const { id, keyFamilyId, accountId, name, models, capabilities, limits, options, requiredLabels, tags } = record;
  const { expiresAtMs, revokedAtMs } = record;
  const named = { id, keyFamilyId, accountId, name, expiresAtMs, revokedAtMs };
  const permitted = { models, capabilities, limits, options, requiredLabels, tags };
  return {
    ...key,
    grant: {
      record: { ...named, ...permitted },
      accountLimits,
      accountDisabled,
      routing: routing && { aliases: routing.aliases, credentials: [...routing.credentials] },
    },
  };
}

function fromStored({ grant: { record, routing, ...account }, ...key }: StoredKey): ConfirmedKey {
  return {
    ...key,
    grant: {
      ...account,
      // JSON has no undefined.
      record: { ...record, expiresAtMs: record.expiresAtMs, revokedAtMs: record.revokedAtMs },
      routing: routing && { aliases: routing.aliases, credentials: new Map(routing.credentials) },
    },
  };
}
