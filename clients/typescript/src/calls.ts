import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, type CallOptions as ConnectCallOptions } from "@connectrpc/connect";
import { ParleyError } from "./errors.js";
import { methodConfig, toMs } from "./service-config.js";

/** Options of one call. */
export interface CallOptions {
  /**
   * The deadline of the call, from now, for all attempts together. The service config's timeout counts when it is
   * shorter, and without this: 15 minutes for completions and embeddings, 30 seconds for other calls.
   */
  readonly timeoutMs?: number | undefined;
  /** Cancels the call, which then throws the signal's reason, as `fetch` does. */
  readonly signal?: AbortSignal | undefined;
  /** The ID of the call, in the gateway's log and in errors; the gateway makes one when it is absent. */
  readonly requestId?: string | undefined;
  /** Called with the response metadata, such as `x-request-id` and `parley-served-model`. */
  readonly onHeader?: ((header: Headers) => void) | undefined;
}

/** Makes one call, with its options as Connect takes them. */
export async function call<T>(
  method: DescMethod,
  options: CallOptions,
  run: (options: ConnectCallOptions) => Promise<T>,
): Promise<T> {
  try {
    return await run(toConnectOptions(method, options));
  } catch (error) {
    throw toThrown(error, options);
  }
}

/** Converts the options. The service config's timeout bounds that of the call. */
export function toConnectOptions(
  method: DescMethod,
  { timeoutMs = Number.POSITIVE_INFINITY, signal, requestId, onHeader }: CallOptions,
): ConnectCallOptions {
  const boundMs = toMs(methodConfig(method)!.timeout);
  return {
    // Connect takes 0 and less as no timeout.
    timeoutMs: Math.ceil(Math.max(1, Math.min(timeoutMs, boundMs))),
    ...(signal !== undefined && { signal }),
    ...(requestId !== undefined && { headers: { "x-request-id": requestId } }),
    ...(onHeader !== undefined && { onHeader }),
  };
}

/** What a failed call throws: a `ParleyError`, or the reason of the caller's signal. */
export function toThrown(error: unknown, { signal, requestId }: CallOptions): unknown {
  if (signal?.aborted === true) return signal.reason;
  return error instanceof ConnectError ? new ParleyError(error, requestId) : error;
}
