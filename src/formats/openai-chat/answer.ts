import { randomUUID } from "node:crypto";
import { FinishReason, type Logprobs, type TokenLogprob, type Usage } from "../../../gen/parley/v1/completion_pb.js";
import type { Annotation, Audio, Image, ReasoningBlock } from "../../../gen/parley/v1/message_pb.js";
import type { Attempt, Report } from "../../../gen/parley/v1/report_pb.js";
import { type Base64, EncodedSource } from "../../encoding/base64.ts";

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

/** The `parley` object: facts without a field in the OpenAI format. */
export function parley(report: Report): object {
  return {
    attempts: report.attempts.map(attempt),
    omitted: report.omitted,
    clamped: report.clamped.map(({ field, requested, sent }) => ({ field, requested, sent })),
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
export function imagePart(image: Image, held?: HeldStrings): object {
  return {
    type: "image_url",
    image_url: { url: imageUrl(image, held) },
    ...(image.signature !== "" && { extra_content: thoughtSignature(image.signature) }),
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

/** A reasoning block; without `at` when it is the first part. */
export function thinkingBlock(block: ReasoningBlock, index: number): object {
  const { text, signature, redacted, textOffset, toolCallOffset } = block;
  const at = textOffset > 0 || toolCallOffset > 0 ? { at: { text: textOffset, tools: toolCallOffset } } : {};
  if (redacted !== "") return { index, type: "redacted_thinking", data: redacted, ...at };
  return { index, type: "thinking", thinking: text, signature, ...at };
}

/** A citation. */
export function annotation({ url, title, startIndex, endIndex }: Annotation): object {
  return { type: "url_citation", url_citation: { url, title, start_index: startIndex, end_index: endIndex } };
}

/** Speech. */
export function audio({ id, data, transcript, expiresAt }: Audio): object {
  return {
    id,
    data: base64(data),
    transcript,
    ...(expiresAt !== undefined && { expires_at: Number(expiresAt) }),
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
