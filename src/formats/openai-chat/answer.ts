import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Audio, Citation, Image, TokenLogprob, TopLogprob } from "../../../gen/parley/v1/message_pb.js";
import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { type Attempt, fromAttemptMessage } from "../../core/attempt.ts";
import { EncodedSource } from "../../encoding/base64.ts";
import type { NameOf } from "../format.ts";
import type { HeldStrings } from "../held-strings.ts";

/*
 * Parts of an answer in the OpenAI format, the same for whole answers and streams.
 */

const FINISH_REASONS: Readonly<Record<FinishReason, string>> = {
  [FinishReason.UNSPECIFIED]: "stop",
  [FinishReason.STOP]: "stop",
  [FinishReason.LENGTH]: "length",
  [FinishReason.TOOL_CALLS]: "tool_calls",
  [FinishReason.CONTENT_FILTER]: "content_filter",
  [FinishReason.OTHER]: "stop",
  [FinishReason.PAUSE]: "stop",
};

/** `finish_reason`: one of four words. */
export function finishReason(reason: FinishReason): string {
  return FINISH_REASONS[reason] ?? "stop";
}

/** `usage`. Totals include cached and reasoning tokens, as clients expect. */
export function usage(of: Usage): object {
  return {
    prompt_tokens: of.inputTokens,
    completion_tokens: of.outputTokens,
    total_tokens: of.totalTokens,
    prompt_tokens_details: {
      cached_tokens: of.cachedInputTokens ?? 0,
      cache_write_tokens: of.cacheWriteInputTokens,
      audio_tokens: of.audioInputTokens,
      image_tokens: of.imageInputTokens,
    },
    completion_tokens_details: {
      reasoning_tokens: of.reasoningOutputTokens ?? 0,
      audio_tokens: of.audioOutputTokens,
      image_tokens: of.imageOutputTokens,
      accepted_prediction_tokens: of.acceptedPredictionTokens,
      rejected_prediction_tokens: of.rejectedPredictionTokens,
    },
  };
}

/** The `parley` object: facts without a field in the OpenAI format. `nameOf`: the caller's names of request fields. */
export function parley(report: Report, nameOf: NameOf): object {
  return {
    attempts: report.attempts.map((each) => attempt(fromAttemptMessage(each))),
    omitted: report.omitted.map(({ field }) => nameOf(field)),
    clamped: report.clamped.map(({ field, requested, sent }) => ({
      field: nameOf(field),
      requested: clampedValue(requested),
      sent: clampedValue(sent),
    })),
    ...(report.costMicroUsd !== undefined && { cost_usd: Number(report.costMicroUsd) / 1_000_000 }),
  };
}

/** One attempt, as in `parley.attempts` and `error.attempts`. */
export function attempt(of: Attempt): object {
  return {
    model: of.model,
    outcome: of.outcome,
    upstream_status: of.upstreamStatus ?? null,
    reason: of.reason,
    start_ms: of.startMs,
    duration_ms: of.durationMs,
  };
}

/** A clamped value in the words of the format: efforts in lower case, times in minutes or hours. */
function clampedValue(value: Value | undefined): unknown {
  const json = value === undefined ? null : toJson(ValueSchema, value);
  if (typeof json !== "string") return json;
  const seconds = /^(\d+)s$/.exec(json)?.[1];
  if (seconds === undefined) return json.replace(/^REASONING_EFFORT_/, "").toLowerCase();
  return Number(seconds) % 3600 === 0 ? `${Number(seconds) / 3600}h` : `${Number(seconds) / 60}m`;
}

/** An `image_url` part with a data URL; its characters are stored in `held`. */
export function imagePart(image: Image, signature: string, held?: HeldStrings): object {
  return {
    type: "image_url",
    image_url: { url: imageUrl(image, held) },
    ...(signature !== "" && { extra_content: thoughtSignature(signature) }),
  };
}

function imageUrl({ source, mediaType }: Image, held: HeldStrings | undefined): string {
  if (source.case === "url") return source.value;
  const head = `data:${mediaType};base64,`;
  if (source instanceof EncodedSource) return head + (held?.hold(source.base64) ?? source.base64.toString());
  return head + base64(source.case === "data" ? source.value : new Uint8Array());
}

/** Provider state, in the place of Google's OpenAI-compatible endpoint. */
export function thoughtSignature(signature: string): object {
  return { google: { thought_signature: signature } };
}

/** A reasoning part and its place in the answer. */
export interface PlacedReasoning {
  readonly text: string;
  readonly redacted: string;
  readonly signature: string;
  /** UTF-16 units of text before it. */
  readonly textOffset: number;
  /** Tool calls before it. */
  readonly callOffset: number;
}

/** A reasoning block; without `at` when it is the first part. */
export function thinkingBlock(
  { text, signature, redacted, textOffset, callOffset }: PlacedReasoning,
  index: number,
): object {
  const at = textOffset > 0 || callOffset > 0 ? { at: { text: textOffset, tools: callOffset } } : {};
  if (redacted !== "") return { index, type: "redacted_thinking", data: redacted, ...at };
  return { index, type: "thinking", thinking: text, signature, ...at };
}

/**
 * The signature of an answer's texts, for which the OpenAI format has one place: the last one, or the first one beside images, as
 * Google's models sign them. Empty without any.
 */
export function textSignature(signatures: readonly string[], hasImage: boolean): string {
  return (hasImage ? signatures[0] : signatures.at(-1)) ?? "";
}

/**
 * Citations of pages; the format has no others. `before`: code points of the texts before their part, and `length`: those of the
 * part so far, because the format has one text, and a place for every citation.
 */
export function annotations(
  citations: readonly Citation[],
  { before, length }: { readonly before: number; readonly length: number },
): object[] {
  return citations.flatMap(({ source, title, textRange }) => {
    if (source.case !== "url") return [];
    const { start, end } = textRange ?? { start: 0, end: length };
    const place = { start_index: start + before, end_index: end + before };
    return [{ type: "url_citation", url_citation: { url: source.value, title, ...place } }];
  });
}

/** Length of a text in Unicode code points. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >> 10 === 0b110111) count -= 1;
  return count;
}

/** Speech. */
export function audio({ id, data, transcript, expireTime }: Audio): object {
  return {
    id,
    data: base64(data),
    transcript,
    ...(expireTime !== undefined && { expires_at: Number(expireTime.seconds) }),
  };
}

/** Log probabilities of a choice or a chunk. */
interface PlacedLogprobs {
  readonly content: readonly TokenLogprob[];
  readonly refusal: readonly TokenLogprob[];
}

/** `logprobs` of a choice; null without any. */
export function logprobs({ content, refusal }: PlacedLogprobs): object | null {
  if (content.length === 0 && refusal.length === 0) return null;
  const list = (tokens: readonly TokenLogprob[]): object[] | null =>
    tokens.length === 0 ? null : tokens.map(tokenLogprob);
  return { content: list(content), refusal: list(refusal) };
}

function tokenLogprob(token: TokenLogprob): object {
  const one = ({ token: text, logprob, bytes }: TopLogprob | TokenLogprob): object => ({
    token: text,
    logprob,
    bytes: bytes ? [...bytes] : null,
  });
  return { ...one(token), top_logprobs: token.top.map(one) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
