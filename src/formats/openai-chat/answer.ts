import { randomUUID } from "node:crypto";
import { FinishReason, type Logprobs, type TokenLogprob, type Usage } from "../../../gen/parley/v1/completion_pb.js";
import type { Annotation, Audio, Image } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import { type Attempt, fromAttemptMessage } from "../../core/attempt.ts";
import { type Base64, EncodedSource } from "../../encoding/base64.ts";
import type { NameOf } from "./field-names.ts";

/** JSON as text, or as buffers where it has long strings. */
export type JsonText = string | readonly Buffer[];

/**
 * Keeps long strings out of a JSON text while it is built: they need no escaping, and images of several megabytes are not
 * copied.
 */
export class HeldStrings {
  readonly #held: Base64[] = [];
  /** Random marker that no text can contain by chance. */
  #mark = "";

  /** Stores a string; returns its placeholder. */
  hold(text: Base64): string {
    this.#mark ||= randomUUID();
    return `${this.#mark}-${this.#held.push(text) - 1};`;
  }

  /** Replaces the placeholders in a text by their strings. */
  putBack(text: string): JsonText {
    if (this.#held.length === 0) return text;
    // Odd parts are numbers of strings.
    const parts = text.split(new RegExp(`${this.#mark}-(\\d+);`));
    return parts.flatMap((part, at) => (at % 2 === 0 ? Buffer.from(part) : this.#held[Number(part)]!.pieces));
  }
}

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
    prompt_tokens: of.promptTokens,
    completion_tokens: of.completionTokens,
    total_tokens: of.totalTokens,
    prompt_tokens_details: {
      cached_tokens: of.cachedTokens ?? 0,
      cache_write_tokens: of.cacheWriteTokens,
      audio_tokens: of.promptAudioTokens,
      image_tokens: of.promptImageTokens,
    },
    completion_tokens_details: {
      reasoning_tokens: of.reasoningTokens ?? 0,
      audio_tokens: of.completionAudioTokens,
      image_tokens: of.completionImageTokens,
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
    clamped: report.clamped.map(({ field, requested, sent }) => ({ field: nameOf(field), requested, sent })),
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

/** A citation. `before`: length of the texts before its part, because the format has one text. */
export function annotation({ url, title, startIndex, endIndex }: Annotation, before: number): object {
  const place = { start_index: startIndex + before, end_index: endIndex + before };
  return { type: "url_citation", url_citation: { url, title, ...place } };
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

/** `logprobs` of a choice. */
export function logprobs(of: Logprobs | undefined): object | null {
  if (of === undefined) return null;
  const list = (tokens: readonly TokenLogprob[]): object[] | null =>
    tokens.length === 0 ? null : tokens.map(tokenLogprob);
  return { content: list(of.content), refusal: list(of.refusal) };
}

function tokenLogprob(token: TokenLogprob): object {
  const one = ({ token: text, logprob, bytes }: TokenLogprob): object => ({
    token: text,
    logprob,
    bytes: bytes ? [...bytes] : null,
  });
  return { ...one(token), top_logprobs: token.top.map(one) };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
