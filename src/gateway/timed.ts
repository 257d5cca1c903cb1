import type { Clock } from "../core/clock.ts";
import type { StoreCall } from "../telemetry/metrics.ts";

/** How long the calls of a store take. */
export interface StoreTimes {
  readonly clock: Clock;
  /** Called at the end of each call. */
  readonly stored: (call: StoreCall) => void;
}

/** Names of operations by the methods that are timed. */
type Operations<T> = { readonly [K in keyof T]?: string };

/** A copy of the port whose `operations` are timed; a rejection counts as failed. */
export function timed<T extends object>(
  port: T,
  operations: Operations<T>,
  { clock, stored, store }: StoreTimes & Pick<StoreCall, "store">,
): T {
  const time = (method: keyof T, operation: string) => {
    const call = port[method] as (...input: readonly unknown[]) => Promise<unknown>;
    return async (...input: readonly unknown[]): Promise<unknown> => {
      const beganMs = clock.monotonic();
      let failed = true;
      try {
        const answer = await call(...input);
        failed = false;
        return answer;
      } finally {
        stored({ store, operation, durationMs: clock.monotonic() - beganMs, failed });
      }
    };
  };
  const methods = Object.entries(operations) as [keyof T, string][];
  return { ...port, ...Object.fromEntries(methods.map(([method, name]) => [method, time(method, name)])) };
}

/** The operations of a store of rates. */
export const RATE_OPERATIONS = { take: "rates_take", release: "rates_release", renew: "rates_renew" } as const;

/** The operations of the store of keys that calls wait for. */
export const KEY_OPERATIONS = {
  findByHash: "key_lookup",
  findByHashes: "key_lookup",
  findWithHash: "key_lookup",
} as const;
