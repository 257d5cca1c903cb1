import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Answer } from "../../core/provider.ts";
import { AnswerBuilder } from "../../core/whole.ts";
import { incomplete } from "../wire/response-failure.ts";
import { object } from "../wire/lenient.ts";
import { keepAll } from "../wire/redaction.ts";
import { AnswerContent } from "./answer-content.ts";
import { readFinish, writeFinish } from "./finish-reason.ts";
import { toInBandFailure } from "./failure.ts";
import { UsageCount } from "./usage.ts";

/**
 * Converts a whole answer to chunks. Throws the failure of an error body with status 200, and `upstream_protocol` for an
 * unfinished answer.
 */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const message = object(json);
  if (message["type"] === "error" || isReported(message["error"]))
    throw toInBandFailure(message, { begun: false, redact });
  const blocks = message["content"];
  const finish = readFinish(message);
  if (!Array.isArray(blocks) || finish === undefined) throw incomplete();
  const out: CompletionChunk[] = [];
  const content = new AnswerContent();
  blocks.forEach((block: unknown, index) => {
    content.open(index, object(block), out);
    content.close(index, out);
  });
  const usage = new UsageCount();
  usage.update(message["usage"]);
  writeFinish(finish, { content, usage }, out);
  return out;
}

/** Some servers send `error: null`. */
const isReported = (error: unknown): boolean => error !== undefined && error !== null;

/** Converts a whole answer. Throws like `toAnswerChunks`. */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}
