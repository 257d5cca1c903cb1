import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import type { Emit } from "../../src/core/provider.ts";
import { toAsyncIterable } from "../../src/inbound/to-async-iterable.ts";

/** Batches of a stream for a test to iterate. Ending the iteration early calls `leave`, which must end the stream. */
export function batchesOf(
  stream: (emit: Emit) => Promise<void>,
  leave: () => void = () => {
    throw new Error("this stream has no leave function");
  },
): AsyncGenerator<readonly CompletionChunk[]> {
  return toAsyncIterable(stream, { signal: new AbortController().signal, leave });
}
