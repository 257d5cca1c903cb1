import { isId } from "../../access/checks.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { keyState } from "../../access/keys.ts";
import { type KeyPrincipal, toPrincipal } from "../../access/principal.ts";
import type { Clock } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";

/** Ports of `findPrincipal`. */
export interface KeyLookup {
  readonly keys: Pick<KeyStore, "findWithHash">;
  readonly clock: Clock;
}

/** The principal of a key, of these accounts or of any. Throws `invalid_request`, also for a key of another account. */
export async function findPrincipal(
  { keys, clock }: KeyLookup,
  keyId: string,
  accountIds?: readonly string[],
): Promise<KeyPrincipal> {
  const confirmedAtMs = clock.monotonic();
  const found = isId(keyId) ? await keys.findWithHash(keyId) : undefined;
  if (found === undefined || accountIds?.includes(found.record.accountId) === false)
    throw invalidField("key_id", accountIds === undefined ? "is not the ID of a key" : "is not a key that you may use");
  const state = keyState(found.record, clock.now());
  const principal = toPrincipal(found, { hash: found.hash, confirmedAtMs });
  if (state !== "active") throw invalidField("key_id", `${keyId} is ${state}; choose another key`);
  if (principal === undefined) throw invalidField("key_id", `${keyId} is of a disabled account; choose another key`);
  return principal;
}
