import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import type { Emit } from "../../src/core/provider.ts";
import { toAsyncIterable } from "../../src/inbound/to-async-iterable.ts";

/** What a stream emits, batch by batch, as a test asks for it. Breaking off calls `leave`, which must end the stream. */
export function batchesOf(
  stream: (emit: Emit) => Promise<void>,
  leave: () => void = () => {
    throw new Error("nobody said how this stream is left");
  },
): AsyncGenerator<readonly CompletionChunk[]> {
  return toAsyncIterable(stream, { signal: new AbortController().signal, leave });
}
