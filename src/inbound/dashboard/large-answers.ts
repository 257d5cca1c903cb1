import type { HandlerContext } from "@connectrpc/connect";
import { type Clock, sleep } from "../../core/clock.ts";
import { Turns } from "../../scheduling/turns.ts";
import { callOf, signedInOf } from "./call.ts";

/** Share of the time that may be spent on such answers while they are asked for without a pause. */
const SHARE = 1 / 2;

/**
 * Makes answers that take the event loop long: one at a time, for the accounts in turn, and with pauses in proportion to the time that the
 * one before took. Rejects with the call's reason when it ends before its turn.
 */
export type InTurn = <T>(context: Pick<HandlerContext, "values">, make: () => T | Promise<T>) => Promise<T>;

export function answersInTurn(clock: Clock): InTurn {
  const turns = new Turns(1);
  let freeMs = -Infinity;
  return (context, make) => {
    const { signal } = callOf(context).open;
    return turns.run(signedInOf(context).account.id, signal, async () => {
      const waitMs = freeMs - clock.monotonic();
      if (waitMs > 0) await sleep(clock, waitMs, signal);
      signal.throwIfAborted();
      const begunMs = clock.monotonic();
      try {
        return await make();
      } finally {
        const endMs = clock.monotonic();
        freeMs = endMs + (endMs - begunMs) * (1 / SHARE - 1);
      }
    });
  };
}
