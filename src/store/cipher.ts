import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "./store-error.ts";

const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
/** Random for each content: far fewer than 2^32 are encrypted with one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts and decrypts content. */
export interface Cipher {
  /** Returns base64 of nonce, tag and encrypted content. `boundTo`: has to be the same for `open`. */
  seal(content: Buffer, boundTo: readonly string[]): string;
  /** Undefined for content of another key or place, and for damaged content. */
  open(sealed: string, boundTo: readonly string[]): Buffer | undefined;
}

/** AES-256-GCM with a key of 32 bytes. */
export function createCipher(key: Buffer): Cipher {
  return {
    seal(content, boundTo) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(JSON.stringify(boundTo)));
      const encrypted = [cipher.update(content), cipher.final()];
      return Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]).toString("base64");
    },
    open(sealed, boundTo) {
      const bytes = Buffer.from(sealed, "base64");
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(JSON.stringify(boundTo)));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
}

/** Reads a key in base64 or hexadecimal. */
export function readKey(text: string): Buffer {
  return Buffer.from(text, text.length === 2 * KEY_BYTES ? "hex" : "base64");
}

/** The cipher of a configured key, or else of the data directory's key in this file. Throws as `keyOfDirectory`. */
export function cipherOf(configured: string | undefined, dataDir: string, file: string): Cipher {
  return createCipher(configured === undefined ? keyOfDirectory(dataDir, file) : readKey(configured));
}

/**
 * Reads a key of the data directory by the name of its file, and creates it when it is missing, readable for this user only. Several
 * processes may do so at the same moment. Throws a StoreError for a file that is not a key.
 */
export function keyOfDirectory(dataDir: string, name: string): Buffer {
  const file = join(dataDir, name);
  const own = `${file}.${randomUUID()}`;
  writeFileSync(own, randomBytes(KEY_BYTES).toString("base64"), { mode: 0o600, flag: "wx", flush: true });
  try {
    // Fails when the file exists, and the file is complete from the start: a rename could replace another process's key.
    linkSync(own, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(own);
  }
  const key = readKey(readFileSync(file, "utf8").trim());
  if (key.length === KEY_BYTES) return key;
  throw new StoreError(`${file} is not a key of ${KEY_BYTES} bytes: restore it from a backup, or remove it.`);
}
