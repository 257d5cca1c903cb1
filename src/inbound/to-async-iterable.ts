import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../core/failure.ts";
import type { Emit } from "../core/provider.ts";
import type { OpenCall } from "./calls.ts";

/**
 * Converts a pushed stream into an async iterable: the stream continues when the last batch was consumed. If the consumer stops
 * early, the call is cancelled and `return()` resolves once the stream has ended.
 */
export async function* toAsyncIterable(
  stream: (emit: Emit) => Promise<void>,
  call: Pick<OpenCall, "signal" | "leave">,
): AsyncGenerator<readonly CompletionChunk[]> {
  let arrival = Promise.withResolvers<readonly CompletionChunk[] | undefined>();
  let room = Promise.withResolvers<void>();
  let isOut = false;
  const ended = stream((batch) => {
    room = Promise.withResolvers();
    arrival.resolve(batch);
    return room.promise;
  }).then(
    () => arrival.resolve(undefined),
    (reason: unknown) => {
      // The consumer may still be reading the last batch. An unhandled rejection would end the process.
      arrival.promise.catch(() => undefined);
      arrival.reject(reason);
    },
  );
  try {
    for (;;) {
      const batch = await arrival.promise;
      if (batch === undefined) return;
      arrival = Promise.withResolvers();
      isOut = true;
      yield batch;
      isOut = false;
      room.resolve();
    }
  } finally {
    if (isOut) {
      call.leave();
      // In addition to the signal, which a completely received answer ignores.
      room.reject(call.signal.reason ?? new Failure("cancelled", "The caller left."));
      // The result is not used.
      arrival.promise.catch(() => undefined);
      await ended;
    }
  }
}
