import { setImmediate as nextTurn } from "node:timers/promises";
import type { KeyGrant } from "../access/key-store.ts";
import type { ConfirmedKey } from "../access/known-keys.ts";

/** Keys that are encoded without a pause. */
const KEYS_PER_TURN = 500;
/** Bytes from which a piece ends. */
const PIECE_BYTES = 256 * 2 ** 10;

type Grant = ConfirmedKey["grant"];
type Routing = NonNullable<Grant["routing"]>;

interface StoredRouting extends Pick<Routing, "aliases"> {
  readonly credentials: readonly (readonly [
    string,
    Routing["credentials"] extends ReadonlyMap<string, infer V> ? V : never,
  ])[];
}

type StoredKey = Omit<ConfirmedKey, "grant"> & Pick<Grant, "record">;

/** Keys of an account in JSON, with the fields that all of them share. */
interface StoredAccount extends Omit<Grant, "record" | "routing"> {
  readonly routing?: StoredRouting | undefined;
  readonly keys: readonly StoredKey[];
}

/** Encoded keys. */
export interface EncodedKeys {
  /** Bytes of all keys, also those that are left out. */
  readonly totalBytes: number;
  /** JSON texts of about 256 KiB, each made when it is asked for; `readPiece` reads them. */
  readonly pieces: Iterable<string>;
}

/**
 * Encodes keys, those of each account given latest first, in at most `limitBytes`, and in addition the fields that the
 * pieces of an account repeat. Aliases and credentials are encoded once for an account, as its latest key has them. Where an
 * account needs more than its share of the bytes its oldest keys are left out, and none of the others.
 */
export async function encodeKeys(keys: readonly ConfirmedKey[], limitBytes: number): Promise<EncodedKeys> {
  const accounts = await measureAccounts(keys);
  const shares = shareFairly(
    accounts.map(({ bytes }) => bytes),
    limitBytes,
  );
  return {
    totalBytes: accounts.reduce((sum, { bytes }) => sum + bytes, 0),
    pieces: encodePieces(accounts.map((account, index) => withinShare(account, shares[index]!))),
  };
}

/** Reads a piece of `encodeKeys`. */
export function readPiece(piece: string): ConfirmedKey[] {
  return (JSON.parse(piece) as readonly StoredAccount[]).flatMap(({ keys, routing: stored, ...account }) => {
    const routing = stored && { aliases: stored.aliases, credentials: new Map(stored.credentials) };
    return keys.map(({ record, ...key }) => ({
      ...key,
      // JSON has no undefined.
      grant: {
        ...account,
        record: { ...record, expiresAtMs: record.expiresAtMs, revokedAtMs: record.revokedAtMs },
        routing,
      },
    }));
  });
}

/** Divides a limit among needs: each gets its whole need or, where it is larger, the same as all other large ones. */
export function shareFairly(needs: readonly number[], limit: number): number[] {
  const shares = needs.map(() => 0);
  const ascending = [...needs.entries()].toSorted(([, one], [, other]) => one - other);
  let left = limit;
  for (const [rank, [index, need]] of ascending.entries()) {
    shares[index] = Math.min(need, Math.floor(left / (needs.length - rank)));
    left -= shares[index];
  }
  return shares;
}

/** Keys of an account with the lengths of their texts. */
interface MeasuredAccount {
  readonly latest: ConfirmedKey;
  readonly keys: { readonly key: ConfirmedKey; readonly bytes: number }[];
  readonly ownBytes: number;
  bytes: number;
}

/** Measures each key without keeping its text: all texts together may be large. */
async function measureAccounts(keys: readonly ConfirmedKey[]): Promise<MeasuredAccount[]> {
  const accounts = new Map<string, MeasuredAccount>();
  for (const [index, key] of keys.entries()) {
    if (index % KEYS_PER_TURN === KEYS_PER_TURN - 1) await nextTurn();
    const { accountId } = key.grant.record;
    let account = accounts.get(accountId);
    if (account === undefined) {
      const ownBytes = lengthOf(toStoredAccount(key, []));
      account = { latest: key, keys: [], ownBytes, bytes: ownBytes };
      accounts.set(accountId, account);
    }
    const bytes = lengthOf(toStoredKey(key));
    account.keys.push({ key, bytes });
    account.bytes += bytes;
  }
  return [...accounts.values()];
}

function withinShare({ keys, ...account }: MeasuredAccount, share: number): MeasuredAccount {
  let left = share - account.ownBytes;
  return { ...account, keys: keys.filter(({ bytes }) => (left -= bytes) >= 0) };
}

function* encodePieces(accounts: readonly MeasuredAccount[]): Iterable<string> {
  let piece: StoredAccount[] = [];
  let pieceBytes = 0;
  for (const { latest, keys, ownBytes } of accounts) {
    let stored: StoredKey[] = [];
    for (const { key, bytes } of keys) {
      if (stored.length === 0) {
        piece.push(toStoredAccount(latest, stored));
        pieceBytes += ownBytes;
      }
      stored.push(toStoredKey(key));
      pieceBytes += bytes;
      if (pieceBytes < PIECE_BYTES) continue;
      yield JSON.stringify(piece);
      piece = [];
      stored = [];
      pieceBytes = 0;
    }
  }
  if (piece.length > 0) yield JSON.stringify(piece);
}

/** Bytes of a value in JSON, with the comma after it. */
function lengthOf(value: StoredAccount | StoredKey): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

function toStoredAccount({ grant }: ConfirmedKey, keys: readonly StoredKey[]): StoredAccount {
  const { accountLimits, accountDisabled, routing, stops } = grant;
  return {
    accountLimits,
    accountDisabled,
    stops,
    routing: routing && { aliases: routing.aliases, credentials: [...routing.credentials] },
    keys,
  };
}

function toStoredKey({ grant: { record }, ...key }: ConfirmedKey): StoredKey {
  // The fields of a grant: records of the store have more.
  const { id, keyFamilyId, accountId, name, models, capabilities, limits, options, requiredLabels, tags } = record;
  const { attributionLimits, storesContent, expiresAtMs, revokedAtMs } = record;
  const named = { id, keyFamilyId, accountId, name, expiresAtMs, revokedAtMs };
  const permissions = { models, capabilities, limits, attributionLimits, options, requiredLabels, tags, storesContent };
  // A field that is missing here would be lost without the database: a limit, for example.
  return { ...key, record: { ...named, ...permissions } satisfies Record<keyof KeyGrant["record"], unknown> };
}
