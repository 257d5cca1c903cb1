import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Answer } from "../../core/provider.ts";
import { AnswerBuilder } from "../../core/whole.ts";
import { incomplete } from "../wire/response-failure.ts";
import { keepAll } from "../wire/redaction.ts";
import { AnswerReader } from "./answer-reader.ts";

/**
 * Converts a whole answer. Throws the failure of an error body with a 2xx status, and `upstream_protocol` for an
 * unfinished or unusable answer.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/** A whole answer as the chunks of a stream; an array is the provider's other form of a stream. Throws alike. */
export function toAnswerChunks(json: unknown, redact = keepAll): readonly CompletionChunk[] {
  const reader = new AnswerReader(incomplete, redact);
  const out: CompletionChunk[] = [];
  reader.read(json, out);
  reader.finish(out);
  return out;
}
