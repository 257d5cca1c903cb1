import { createHash } from "node:crypto";
import type { Audio, TextRange, TokenLogprob, TopLogprob } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { array, MAX_TOKEN_CHARS, number, object } from "./json.ts";
import type { TranslationLog } from "./translation.ts";

/*
 * Content that OpenAI's chat completions and its Responses API write and read in the same way.
 */

/**
 * Largest tokens of a picture of OpenAI's image tool with its default model, `gpt-image-2`: 23,719 for 2880x2880 in quality `high` (its
 * calculator in the guide "Image generation" and the formula in "Gpt-image-2 output pricing calculator", OpenAI's developer community,
 * June 2026; earlier models have 6,240 at most), and 100 for each of three partial pictures.
 */
export const MADE_PICTURE_TOKENS = 24_019;

/** Formats by media type, if the format is not the subtype. */
const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ["audio/mpeg", "mp3"],
  ["audio/l16", "pcm16"],
  ["audio/x-wav", "wav"],
  ["audio/vnd.wave", "wav"],
]);

/** A media type such as `audio/wav` or `audio/L16;rate=24000`; matches it without parameters. */
const AUDIO_TYPE = /^audio\/([a-z0-9.+-]+)(?=;|$)/;

/** Converts a recording. Throws `invalid_request` that names `field` for a URL, missing data, and an unknown type. */
export function toInputAudio(
  { source, mediaType }: Audio,
  { log, field }: { readonly log: TranslationLog; readonly field: string },
): { data: string; format: string } {
  if (source.case === "url") throw invalidField(field, "this model's provider does not read addresses of recordings");
  if (source.case === undefined || source.value.length === 0) throw invalidField(field, "has no audio data");
  const [type = "", subtype] = AUDIO_TYPE.exec(mediaType.toLowerCase()) ?? [];
  const format = AUDIO_FORMATS.get(type) ?? subtype;
  if (format === undefined) throw invalidField(field, "must have the media type of a recording, such as audio/wav");
  return { data: log.base64(source.value), format };
}

export function toDataUrl(log: TranslationLog, bytes: Uint8Array, mediaType: string): string {
  return `data:${mediaType};base64,${log.base64(bytes)}`;
}

/**
 * Shortens an ID of a tool call above `maxChars` and appends a hash, the same for the call and its result. Keeps all characters: some
 * servers interpret their own IDs.
 */
export function toCallId(id: string, maxChars: number): string {
  if (id.length <= maxChars) return id;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, 8);
  return `${id.slice(0, maxChars - hash.length - 1)}_${hash}`;
}

/** A range of a text; undefined when it has no start or is empty. */
export function toTextRange(start: number | undefined, end: number | undefined): TextRange | undefined {
  if (start === undefined || end === undefined || end <= start) return undefined;
  return { $typeName: "parley.v1.TextRange", start, end };
}

/** Reads a list of tokens with their log probabilities. */
export function readTokens(value: unknown): TokenLogprob[] {
  return array(value).flatMap((entry): TokenLogprob[] => {
    const { top_logprobs: top } = object(entry);
    const token = readToken(entry);
    if (token === undefined) return [];
    const likely = array(top).flatMap((other): TopLogprob[] => {
      const read = readToken(other);
      return read === undefined ? [] : [{ $typeName: "parley.v1.TopLogprob", ...read }];
    });
    return [{ $typeName: "parley.v1.TokenLogprob", ...token, top: likely }];
  });
}

/** Reads a token. Undefined without a text or a probability, and for a text beyond MAX_TOKEN_CHARS. */
function readToken(value: unknown): Omit<TopLogprob, "$typeName"> | undefined {
  const { token, logprob: given, bytes } = object(value);
  const logprob = number(given);
  if (typeof token !== "string" || token.length > MAX_TOKEN_CHARS || logprob === undefined) return undefined;
  return { token, logprob, ...(Array.isArray(bytes) && { bytes: Uint8Array.from(bytes.map(Number)) }) };
}
