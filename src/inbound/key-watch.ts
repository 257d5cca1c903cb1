import { type Authenticator, refused, STALE_LIMIT_MS, unavailable } from "../access/key-cache.ts";
import { permit } from "../access/permissions.ts";
import { isExpired, type KeyPrincipal } from "../access/principal.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Calls, KeyedCall } from "./calls.ts";

/**
 * Pause between two checks. The cache of keys forgets at once what it is told of and asks the store about the rest every
 * three seconds, so a change ends calls within this time, and one that no notification told of within five seconds.
 */
const CHECK_MS = 250;

export interface KeyWatchPorts {
  readonly calls: Pick<Calls, "active" | "keyed">;
  readonly keys: Pick<Authenticator, "recheck">;
  readonly clock: Clock;
}

/**
 * Ends calls in flight whose key no longer allows them: with `unauthenticated` when it was revoked, has expired or its
 * account was disabled, with `permission_denied` when it has lost a model or the capability that the completion needs, and
 * with `overloaded` when the store could not confirm it for as long as it would still be accepted. Returns what stops it.
 */
export function startKeyWatch({ calls, keys, clock }: KeyWatchPorts): () => void {
  let stopped = false;
  let cancelTimer = (): void => undefined;

  const check = async (): Promise<void> => {
    // Not those that begin meanwhile: their keys have been confirmed later than what is asked now.
    const checked = [...calls.keyed()];
    if (checked.length === 0) return;
    const answers = await keys.recheck(new Set(checked.map(({ principal }) => principal.hash)));
    for (const call of checked) {
      const ending = update(call, answers);
      if (ending !== undefined) call.end(ending);
    }
  };

  /** Takes over what the store has said of a call's key. Returns what ends the call, if anything does. */
  const update = (call: KeyedCall, answers: ReadonlyMap<string, KeyPrincipal | undefined>): Failure | undefined => {
    const { hash } = call.principal;
    if (answers.has(hash)) {
      const principal = answers.get(hash);
      if (principal === undefined) return refused();
      call.principal = principal;
    }
    if (isExpired(call.principal, clock)) return refused();
    if (clock.monotonic() - call.principal.confirmedAtMs > STALE_LIMIT_MS) return unavailable();
    if (call.needs === undefined) return undefined;
    try {
      permit(call.principal, call.needs);
    } catch (reason) {
      return Failure.from(reason);
    }
    return undefined;
  };

  const wait = (): void => {
    cancelTimer = clock.after(CHECK_MS, () => {
      if (calls.active === 0) return wait();
      void check().then(() => stopped || wait());
    });
  };
  wait();
  return () => {
    stopped = true;
    cancelTimer();
  };
}
