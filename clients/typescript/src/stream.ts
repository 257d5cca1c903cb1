import { Code, ConnectError, type CallOptions as ConnectCallOptions } from "@connectrpc/connect";
import { CompletionAccumulator } from "./accumulator.js";
import { type CallOptions, toConnectOptions, toThrown } from "./calls.js";
import { type Completion, type CompletionChunk, CompletionService } from "./gen/parley/v1/completion_pb.js";

/**
 * The chunks of one streamed completion, to be read once. The call begins with the first read; leaving the loop early
 * cancels it. A stream that fails, or ends without its report, throws.
 */
export class CompletionStream implements AsyncIterable<CompletionChunk> {
  readonly #accumulator = new CompletionAccumulator();
  readonly #chunks: AsyncGenerator<CompletionChunk, void>;

  /** @internal */
  constructor(open: (options: ConnectCallOptions) => AsyncIterable<CompletionChunk>, options: CallOptions) {
    this.#chunks = this.#read(open, options);
  }

  /** Returns the chunks that have not been read. */
  [Symbol.asyncIterator](): AsyncGenerator<CompletionChunk, void> {
    return this.#chunks;
  }

  /** Reads what is left of the stream and returns the whole completion, as `create` does. */
  async completion(): Promise<Completion> {
    for await (const _ of this.#chunks);
    if (!this.#accumulator.isComplete) throw new Error("The completion is not whole: its stream failed or was left.");
    return this.#accumulator.completion;
  }

  async *#read(
    open: (options: ConnectCallOptions) => AsyncIterable<CompletionChunk>,
    options: CallOptions,
  ): AsyncGenerator<CompletionChunk, void> {
    const left = new AbortController();
    const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal]);
    const chunks = open(toConnectOptions(CompletionService.method.stream, { ...options, signal }));
    try {
      for await (const chunk of chunks) {
        this.#accumulator.add(chunk);
        yield chunk;
      }
      if (!this.#accumulator.isComplete) throw new ConnectError("The stream ended without its report.", Code.Internal);
    } catch (error) {
      throw toThrown(error, options);
    } finally {
      // Leaving a loop over Connect's iterable does not cancel its call, and its timer runs until the next read fails.
      left.abort();
      await chunks[Symbol.asyncIterator]()
        .next()
        .catch(() => undefined);
    }
  }
}
