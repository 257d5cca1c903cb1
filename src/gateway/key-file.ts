import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Authenticator } from "../access/key-cache.ts";
import type { ConfirmedKey } from "../access/known-keys.ts";
import type { Config } from "../config/config.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { type Cipher, createCipher, keyOfDirectory, readKey } from "../store/cipher.ts";
import { describeLocation } from "../store/database.ts";
import type { Logger } from "../telemetry/logger.ts";
import { encodeKeys, readPiece } from "./key-file-content.ts";

/** File of the encryption key in the data directory. */
const KEY_FILE = "known-keys.key";
/** Files of known keys, one for each worker. */
const FILE = /^known-keys-(\d+)\.sealed$/;
/** Content of another version is not read. */
const VERSION = "2";
/** Limits of a file: keys, and bytes of their text. */
const MAX_KEYS = 10_000;
const MAX_BYTES = 16 * 2 ** 20;
/** Base64 of that, with the fields that the pieces of an account repeat. */
const MAX_FILE_BYTES = 28 * 2 ** 20;
/** Shortest interval of writes after a key was added or removed, and of writes that only update times. */
const CHANGED_MS = 2_000;
const UNCHANGED_MS = 60_000;
/** Text of keys that is encoded in a second on average, however often they change. */
const BYTES_PER_SECOND = 2 ** 20;

/** State of a process that lets the next one serve without its database. */
export interface KnownBefore {
  readonly keys: readonly ConfirmedKey[];
  /** The secret of the seal of providers' state. */
  readonly stateSecret: Buffer;
  /** Number of replicas, as last seen. */
  readonly replicas: number;
}

/** The beginning of a file. */
interface Head {
  /** Random; the other pieces are bound to it. */
  readonly id: string;
  readonly stateSecret: string;
  readonly replicas: number;
}

interface Content extends Head {
  readonly keys: readonly ConfirmedKey[];
}

interface KeyFilePorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Number of this worker among those of the data directory, from 1; 0 for a program without workers. */
  readonly worker: number;
}

/**
 * The keys that a process knows, in a file of the data directory, encrypted and authenticated, for the next process that starts while
 * the database is unavailable. Bound to the database's address: another one has other keys. A line is one piece: the head, pieces of
 * keys, and an empty one at the end.
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
      keys: keys.toSorted((one, other) => other.confirmedAtMs - one.confirmedAtMs),
      stateSecret: Buffer.from(first.stateSecret, "base64"),
      replicas: Math.max(...contents.map(({ replicas }) => replicas)),
    };
  }

  /**
   * Writes the file again when a key was added or removed (a larger file less often), or when its times are a minute old.
   * The returned function stops that and writes the file once more.
   */
  keep(
    keys: Pick<Authenticator, "confirmedKeys" | "changes">,
    facts: { readonly stateSecret: Buffer; readonly replicas: () => number },
  ): () => Promise<void> {
    const { clock, log } = this.#ports;
    const stopped = new AbortController();
    let isFailing = false;
    let changes = -1;
    let pauseMs = CHANGED_MS;
    const write = async (): Promise<void> => {
      changes = keys.changes();
      try {
        const known = { ...facts, replicas: facts.replicas(), keys: await keys.confirmedKeys(MAX_KEYS) };
        const seconds = (await this.#write(known)) / BYTES_PER_SECOND;
        pauseMs = Math.min(Math.max(CHANGED_MS, seconds * 1_000), UNCHANGED_MS);
        isFailing = false;
      } catch (cause) {
        if (!isFailing) log.error({ cause: String(cause) }, "known keys cannot be written to data_dir");
        isFailing = true;
      }
    };
    const repeat = async (): Promise<void> => {
      let dueMs = clock.monotonic();
      for (;;) {
        await sleep(clock, pauseMs, stopped.signal);
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
    const [first = "", ...pieces] = (await readFile(path, "utf8")).split("\n");
    const end = pieces.pop();
    const head = this.#open(first, "head");
    if (head === undefined || end === undefined) return undefined;
    const { id, ...facts } = JSON.parse(head) as Head;
    if (this.#open(end, id, "end", String(pieces.length)) === undefined) return undefined;
    const keys: ConfirmedKey[] = [];
    for (const [index, piece] of pieces.entries()) {
      const text = this.#open(piece, id, String(index));
      if (text === undefined) return undefined;
      keys.push(...readPiece(text));
    }
    return { id, ...facts, keys };
  }

  /** Returns the number of bytes that all keys would take. */
  async #write({ keys, stateSecret, replicas }: KnownBefore): Promise<number> {
    const { dataDir } = this.#config;
    const { pieces, totalBytes } = await encodeKeys(keys, MAX_BYTES);
    const head: Head = { id: randomUUID(), stateSecret: stateSecret.toString("base64"), replicas };
    const path = join(dataDir, `known-keys-${this.#ports.worker}.sealed`);
    const unfinished = `${path}.part`;
    try {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      const file = await open(unfinished, "w", 0o600);
      try {
        await this.#writePieces(file, head, pieces);
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
    return totalBytes;
  }

  /** Encrypts and writes one piece after the other, so that the memory has one at a time. */
  async #writePieces(file: FileHandle, head: Head, pieces: Iterable<string>): Promise<void> {
    await file.appendFile(this.#sealed(JSON.stringify(head), "head"));
    let count = 0;
    for (const piece of pieces) await file.appendFile(`\n${this.#sealed(piece, head.id, String(count++))}`);
    await file.appendFile(`\n${this.#sealed("", head.id, "end", String(count))}`);
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

  #sealed(text: string, ...place: readonly string[]): string {
    return this.#seal().seal(Buffer.from(text), this.#boundTo(place));
  }

  #open(sealed: string, ...place: readonly string[]): string | undefined {
    return this.#seal().open(sealed, this.#boundTo(place))?.toString();
  }

  #boundTo(place: readonly string[]): string[] {
    return ["known-keys", VERSION, describeLocation(this.#config), ...place];
  }
}
