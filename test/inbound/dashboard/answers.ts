import { create } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  type CompletionRequest,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Call } from "../../../src/core/call.ts";
import type { Emit } from "../../../src/core/provider.ts";
import type { Completions } from "../../../src/core/completions.ts";

/** One completion that a test answers, and that ends as core's do when its call is ended. */
export class AnsweredCall {
  readonly request: CompletionRequest;
  readonly call: Call;
  /** Whether its reader has got its end, or has left. */
  isOver = false;
  readonly #texts: string[] = [];
  #next = Promise.withResolvers<void>();
  #isEnding = false;

  constructor(request: CompletionRequest, call: Call) {
    this.request = request;
    this.call = call;
    call.signal.addEventListener("abort", () => this.#next.resolve());
  }

  say(text: string): void {
    this.#texts.push(text);
    this.#next.resolve();
  }

  end(): void {
    this.#isEnding = true;
    this.#next.resolve();
  }

  async write(emit: Emit): Promise<void> {
    const { signal } = this.call;
    try {
      for (;;) {
        signal.throwIfAborted();
        const text = this.#texts.shift();
        if (text !== undefined) await emit([textChunk(text)]);
        else if (this.#isEnding) return;
        else {
          await this.#next.promise;
          this.#next = Promise.withResolvers();
        }
      }
    } finally {
      this.isOver = true;
    }
  }
}

/** Completions that a test answers by hand. */
export class Answers implements Pick<Completions, "stream"> {
  readonly calls: AnsweredCall[] = [];

  readonly stream = async (request: CompletionRequest, call: Call, emit: Emit): Promise<void> => {
    const answered = new AnsweredCall(request, call);
    this.calls.push(answered);
    await answered.write(emit);
  };
}

function textChunk(text: string): CompletionChunk {
  return create(CompletionChunkSchema, {
    event: { case: "partDelta", value: { choiceIndex: 0, content: { case: "text", value: text } } },
  });
}
