import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../core/failure.ts";
import type { Answer } from "../../core/provider.ts";
import { AnswerBuilder } from "../../core/whole.ts";
import { findError, toInnerFailure } from "./failure.ts";
import { OpenAiStreamReader } from "./stream.ts";

/**
 * A whole completion, read as a stream of one event. Throws the Failure that it reports, or `upstream_protocol` when it
 * is no completion or has no end.
 */
export function readOpenAiCompletion(json: unknown): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of readOpenAiChunks(json)) builder.add(chunk);
  return builder.build();
}

/** The same as chunks. */
export function readOpenAiChunks(json: unknown): CompletionChunk[] {
  const error = findError(json);
  if (error !== undefined) throw toInnerFailure(error, "whole");
  const reader = new OpenAiStreamReader();
  const out: CompletionChunk[] = [];
  reader.readObject(json, out);
  if (!reader.ended) {
    throw new Failure("upstream_protocol", "The upstream provider's answer is not a complete one.");
  }
  reader.end(out);
  return out;
}
