import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../core/failure.ts";
import type { Emit } from "../core/provider.ts";
import type { OpenCall } from "./calls.ts";

/**
 * What a stream emits, for a library that asks instead of being told: the stream goes on when the last batch has been worked
 * through. Whoever returns early, or fails, has left its call, and waits until the stream has ended.
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
    (reason: unknown) => arrival.reject(reason),
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
      // Not only the signal: an answer that has arrived whole no longer looks at it.
      room.reject(call.signal.reason ?? new Failure("cancelled", "The caller left."));
      // Nobody hears how it ends.
      arrival.promise.catch(() => undefined);
      await ended;
    }
  }
}
