import { Failure, invalidField } from "../core/failure.ts";
import type { AccountStore } from "./account-store.ts";
import { findAccount } from "./accounts.ts";
import { unknownId } from "./checks.ts";
import type { KeyRecord } from "./key-store.ts";
import { type KeyActor, type KeyContext, keyState, requireRoom } from "./keys.ts";

/**
 * Makes another account the owner of a key, of the keys that it has replaced and of those that replace it. They keep working; requests that
 * have begun, and past ones, stay with the account that had them. Throws `invalid_request` for a key that does not work, for an unknown
 * or disabled account, and for one with `MAX_WORKING_KEYS` keys; `permission_denied` for a developer, of a key that an administrator has limited.
 */
export async function transferKey(
  { store, clock, accounts }: KeyContext & { readonly accounts: Pick<AccountStore, "find"> },
  key: KeyRecord,
  { to, by }: { readonly to: string; readonly by: KeyActor },
): Promise<void> {
  const { id, accountId: from } = key;
  const state = keyState(key, clock.now());
  if (state !== "active") throw invalidField("id", `${id} is ${state}`);
  await requireReceiver({ store: accounts }, { from, to });
  if (by === "developer" && key.limitedByAdministrator) throw isLocked();
  await requireRoom({ store, clock }, to);
  // Checked by the store again, so that it holds against a simultaneous change by an administrator.
  const limitedByAdministrator = by === "developer" ? false : undefined;
  if (await store.transfer(id, { from, to, limitedByAdministrator })) return;
  const { accountId, limitedByAdministrator: isLimited } = (await store.find(id)) ?? {};
  throw accountId === from && isLimited === true ? isLocked() : unknownId("key", id);
}

function isLocked(): Failure {
  const why = "This key is locked by an administrator: only administrators can transfer it.";
  return new Failure("permission_denied", why);
}

/** Throws `invalid_request` for an account that cannot become the owner of keys. */
export async function requireReceiver(
  { store }: { readonly store: Pick<AccountStore, "find"> },
  { from, to, field = "account_id" }: { readonly from: string; readonly to: string; readonly field?: string },
): Promise<void> {
  if (to === from) throw invalidField(field, "is the account that has the keys");
  const { disabledAtMs } = await findAccount(store, to);
  if (disabledAtMs !== undefined) throw invalidField(field, `${to} is disabled`);
}
