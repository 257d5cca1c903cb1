import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../core/failure.ts";
import type { StreamReader } from "../answer.ts";
import type { SseEvent } from "../sse.ts";
import { AnswerReader } from "./answer-reader.ts";
import { failedMidway } from "./failure.ts";
import { parsed } from "../lenient.ts";

/**
 * Reads the events of one stream. The dialect has no end marker: the body just ends, and whether the answer is whole
 * shows in the finish reasons that came before.
 */
export function readGeminiStream(): StreamReader {
  const reader = new AnswerReader("The upstream provider closed the stream before it was complete.");
  return {
    complete: false,
    read({ data }: SseEvent, out: CompletionChunk[]): void {
      // Not of this dialect, but proxies add it.
      if (data.trim() === "" || data.trim() === "[DONE]") return;
      const json = parsed(data);
      if (json === undefined)
        throw new Failure("upstream_protocol", "The upstream provider's answer could not be read.");
      try {
        reader.read(json, out);
      } catch (reason) {
        throw reader.spoke && reason instanceof Failure ? failedMidway(reason) : reason;
      }
    },
    end: (out) => reader.finish(out),
  };
}
