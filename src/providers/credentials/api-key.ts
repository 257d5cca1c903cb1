import { readFileSync, statSync } from "node:fs";
import type { Headers } from "./credential.ts";

/** A secret that is sent in one header. */
export interface ApiKey {
  /** The header with the secret. Returns the same object until the secret changes. */
  headers(): Headers;
  /** The secret, and the previous one, which answers may still contain. */
  secrets(): readonly string[];
}

/** Prefix of a configured key that names a file with the key. */
const FILE = "file:";

/** Milliseconds after which a file is checked again. */
const LOOK_AGAIN_MS = 1_000;

/** Longest file that is read, in bytes. */
const MAX_FILE_BYTES = 16 * 1024;

/**
 * A configured key: the key itself, or `file:` and the path of a file that is read again when it has changed. The header is
 * `authorization` with the scheme Bearer, or another header with the key alone. Throws an Error for a file without a usable key.
 */
export function toApiKey(configured: string, header: string): ApiKey {
  const toHeaders = (secret: string): Headers => keyHeaders(secret, header);
  if (configured.startsWith(FILE)) return new KeyFile(configured.slice(FILE.length), toHeaders);
  const headers = toHeaders(configured);
  return { headers: () => headers, secrets: () => [configured] };
}

/** The header with a key. `header`: its name in lower case. */
export function keyHeaders(secret: string, header: string): Headers {
  return Object.freeze({ [header]: header === "authorization" ? `Bearer ${secret}` : secret });
}

/** Whether a configured key names a file. */
export function isKeyFile(configured: string): boolean {
  return configured.startsWith(FILE);
}

/** Reads the key in a file. Throws an Error that says what is wrong with the file, without its content. */
function readKeyFile(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > MAX_FILE_BYTES) throw new Error("the file is too long for a key");
  const secret = bytes.toString("utf8").trim();
  if (secret === "") throw new Error("the file is empty");
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new Error("the file has more than one word, or characters that are not ASCII");
  return secret;
}

/** A key in a file, which secret managers replace while the gateway runs. */
class KeyFile implements ApiKey {
  readonly #path: string;
  readonly #toHeaders: (secret: string) => Headers;
  #version: string;
  #secrets: readonly string[];
  #headers: Headers;
  #lookedMs = performance.now();

  constructor(path: string, toHeaders: (secret: string) => Headers) {
    this.#path = path;
    this.#toHeaders = toHeaders;
    this.#version = versionOf(path);
    const secret = readKeyFile(path);
    this.#secrets = [secret];
    this.#headers = toHeaders(secret);
  }

  headers(): Headers {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs < LOOK_AGAIN_MS) return this.#headers;
    this.#lookedMs = nowMs;
    try {
      const version = versionOf(this.#path);
      if (version !== this.#version) {
        const secret = readKeyFile(this.#path);
        this.#version = version;
        this.#secrets = [secret, ...this.#secrets.slice(0, 1)];
        this.#headers = this.#toHeaders(secret);
      }
    } catch {
      // The file may be being replaced now, so the earlier key is used until the next check.
    }
    return this.#headers;
  }

  secrets(): readonly string[] {
    return this.#secrets;
  }
}

function versionOf(path: string): string {
  const { mtimeMs, ino, size } = statSync(path);
  return `${mtimeMs} ${ino} ${size}`;
}
