import { create } from "@bufbuild/protobuf";
import {
  type Logprobs,
  LogprobsSchema,
  type TokenLogprob,
  TokenLogprobSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { array, number, object } from "../wire/lenient.ts";

/** Log probabilities of a choice or of a delta; undefined when there are none. */
export function readLogprobs(value: unknown): Logprobs | undefined {
  const { content, refusal } = object(value);
  const out = { content: readTokens(content), refusal: readTokens(refusal) };
  return out.content.length + out.refusal.length > 0 ? create(LogprobsSchema, out) : undefined;
}

/** Both, in this order. */
export function joinLogprobs(first: Logprobs, second: Logprobs): Logprobs {
  return create(LogprobsSchema, {
    content: [...first.content, ...second.content],
    refusal: [...first.refusal, ...second.refusal],
  });
}

function readTokens(value: unknown): TokenLogprob[] {
  return array(value).flatMap((entry) => {
    const { token, logprob: given, bytes, top_logprobs: top } = object(entry);
    const logprob = number(given);
    if (typeof token !== "string" || logprob === undefined) return [];
    const utf8 = Array.isArray(bytes) ? { bytes: Uint8Array.from(bytes.map(Number)) } : {};
    return [create(TokenLogprobSchema, { token, logprob, ...utf8, top: readTokens(top) })];
  });
}
