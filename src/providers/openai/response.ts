import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Answer } from "../../core/provider.ts";
import { AnswerBuilder } from "../../core/whole.ts";
import { incomplete } from "../wire/response-failure.ts";
import { keepAll } from "../wire/redaction.ts";
import { findError } from "./error-body.ts";
import { toInBandFailure } from "./failure.ts";
import { AnswerStream } from "./stream.ts";

/**
 * A whole completion, read as a stream of one event. Throws the Failure that it reports, or `upstream_protocol` when it
 * is no completion or has no end.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/** The same as chunks. */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const error = findError(json);
  if (error !== undefined) throw toInBandFailure(error, { begun: false, redact });
  const reader = new AnswerStream(redact);
  const out: CompletionChunk[] = [];
  reader.readObject(json, out);
  if (!reader.ended) throw incomplete();
  reader.end(out);
  return out;
}
