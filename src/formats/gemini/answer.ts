import { type ChoiceFinish, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type {
  Audio,
  Citation,
  Image,
  NativeBlock,
  TokenLogprob,
  TopLogprob,
} from "../../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { exceedsJsonSize, MAX_RESPONSE_JSON } from "../../encoding/json-size.ts";
import type { HeldStrings } from "../held-strings.ts";
import { base64Of } from "../media.ts";
import { readFurther } from "../native.ts";
import type { FunctionNames } from "./function-names.ts";

/*
 * Parts of an answer as JSON text, the same for whole answers and streams. The provider's JSON is inserted unchanged, because parsing
 * and writing it would change large numbers.
 */

/** The name of this dialect in native parts and details. */
export const DIALECT = "gemini";

/** Finish reasons of the format for withheld content. */
const BLOCKED: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** Other finish reasons of the format. */
const OTHER: ReadonlySet<string> = new Set(["LANGUAGE", "NO_IMAGE", "IMAGE_OTHER"]);

/** `finishReason`: the provider's own reason if the format has it. */
function finishReason(reason: FinishReason, native: string): string {
  switch (reason) {
    case FinishReason.LENGTH:
      return "MAX_TOKENS";
    case FinishReason.CONTENT_FILTER:
      return BLOCKED.has(native) ? native : "SAFETY";
    case FinishReason.OTHER:
      return OTHER.has(native) ? native : "OTHER";
    default:
      return "STOP";
  }
}

/** `usageMetadata`. Thoughts are counted apart from the answer. */
export function usage(of: Usage): object {
  const thoughts = of.reasoningOutputTokens ?? 0;
  const answer = Math.max(of.outputTokens - thoughts, 0);
  const prompt = { AUDIO: of.audioInputTokens, IMAGE: of.imageInputTokens };
  const candidates = { AUDIO: of.audioOutputTokens, IMAGE: of.imageOutputTokens };
  const cached = { AUDIO: of.cachedAudioInputTokens, IMAGE: of.cachedImageInputTokens };
  return {
    promptTokenCount: of.inputTokens,
    candidatesTokenCount: answer,
    totalTokenCount: of.totalTokens,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(of.cachedInputTokens ? { cachedContentTokenCount: of.cachedInputTokens } : {}),
    ...details("promptTokensDetails", of.inputTokens, prompt),
    ...details("cacheTokensDetails", of.cachedInputTokens ?? 0, cached),
    ...details("candidatesTokensDetails", answer, candidates),
  };
}

/** Tokens by modality, if the provider counted any modality but text. */
function details(name: string, total: number, counts: Readonly<Record<string, number | undefined>>): object {
  const others = Object.entries(counts).flatMap(([modality, tokenCount]) =>
    tokenCount ? [{ modality, tokenCount }] : [],
  );
  if (others.length === 0) return {};
  const text = total - others.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
  return { [name]: [...(text > 0 ? [{ modality: "TEXT", tokenCount: text }] : []), ...others] };
}

/** The end of a part's object, with its signature. */
function signed(signature: string | undefined): string {
  return signature === undefined ? "}" : `,"thoughtSignature":${JSON.stringify(signature)}}`;
}

export function textPart(text: string, signature?: string): string {
  return `{"text":${JSON.stringify(text)}${signed(signature)}`;
}

export function thoughtPart(text: string): string {
  return `{"text":${JSON.stringify(text)},"thought":true}`;
}

/** Whether there are fields that only this dialect has. */
export function hasFurther(given: Readonly<Record<string, string>>): boolean {
  return Object.keys(readFurther(given, { dialect: DIALECT })).length > 0;
}

/** A part as JSON text. The fields that only this dialect has come before its own fields, which take precedence. */
export function withFurther(part: string, given: Readonly<Record<string, string>>): string {
  const fields = JSON.stringify(readFurther(given, { dialect: DIALECT }));
  return fields === "{}" ? part : `${fields.slice(0, -1)},${part.slice(1)}`;
}

/** A picture; its characters are stored in `held`. */
export function imagePart(image: Image, signature: string | undefined, held?: HeldStrings): string {
  const mimeType = JSON.stringify(image.mediaType);
  if (image.source.case === "url") {
    const type = image.mediaType === "" ? "" : `,"mimeType":${mimeType}`;
    return `{"fileData":{"fileUri":${JSON.stringify(image.source.value)}${type}}${signed(signature)}`;
  }
  return `{"inlineData":{"mimeType":${mimeType},"data":"${base64Of(image.source, held)}"}${signed(signature)}`;
}

export function audioPart({ mediaType, source }: Audio): string {
  return `{"inlineData":{"mimeType":${JSON.stringify(mediaType)},"data":"${base64Of(source)}"}}`;
}

/** A whole call. */
export interface WrittenCall {
  readonly id: string;
  readonly name: string;
  readonly args: string;
}

export function callPart({ id, name, args }: WrittenCall, names: FunctionNames, signature?: string): string {
  const called = `"id":${JSON.stringify(id)},"name":${JSON.stringify(names.toGiven(name))},"args":${toArgs(args)}`;
  return `{"functionCall":{${called}}${signed(signature)}`;
}

/** Arguments as an object. The format takes only objects, so other arguments are wrapped as text. */
function toArgs(text: string): string {
  if (text.trim() === "") return "{}";
  return objectText(text) ?? JSON.stringify({ arguments: text });
}

/** A native part of this dialect; undefined for another dialect, whose parts have no place in the format. */
export function nativePart({ dialect, json }: Pick<NativeBlock, "dialect" | "json">): string | undefined {
  return dialect === DIALECT ? objectText(json) : undefined;
}

/** The text of a JSON object in one line; undefined for another text. */
function objectText(json: string): string | undefined {
  if (!json.trimStart().startsWith("{") || !isJson(json)) return undefined;
  return oneLine(json);
}

function isJson(text: string): boolean {
  if (exceedsJsonSize(text, MAX_RESPONSE_JSON)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

/** Replaces line ends, which JSON has only between values, by spaces: in a stream they would end an event. */
function oneLine(json: string): string {
  if (!/[\r\n]/.test(json)) return json;
  // A tenth of the cost of replacing in the text.
  const bytes = Buffer.from(json);
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === LINE_FEED || bytes[at] === RETURN) bytes[at] = SPACE;
  return bytes.toString();
}

const GROUNDING = "gemini.grounding_metadata";

/** Fields of a candidate by their names in `Choice.provider_details_json`. */
const DETAILS: Readonly<Record<string, string>> = {
  [GROUNDING]: "groundingMetadata",
  "gemini.safety_ratings": "safetyRatings",
  "gemini.citation_metadata": "citationMetadata",
  "gemini.url_context_metadata": "urlContextMetadata",
};

/**
 * The finish reason and the provider's details, as fields of a candidate. `cited`: the cited pages; providers of this dialect state them
 * in their details.
 */
export function finishFields(
  {
    finishReason: reason,
    nativeFinishReason: native,
    providerDetailsJson: given,
  }: Pick<ChoiceFinish, "finishReason" | "nativeFinishReason" | "providerDetailsJson">,
  cited: ReadonlyMap<string, string>,
): string {
  let fields = `"finishReason":"${finishReason(reason, native)}"`;
  if (cited.size > 0 && given[GROUNDING] === undefined) {
    const groundingChunks = [...cited].map(([uri, title]) => ({ web: { uri, title } }));
    fields += `,"groundingMetadata":${JSON.stringify({ groundingChunks })}`;
  }
  for (const [name, json] of Object.entries(given)) {
    const key = DETAILS[name] ?? /^gemini\.([a-z][A-Za-z0-9]*)$/.exec(name)?.[1];
    if (key !== undefined && isJson(json)) fields += `,"${key}":${oneLine(json)}`;
  }
  return fields;
}

/** The provider's fields beside the candidates, with a comma before each. */
export function responseFields(given: Readonly<Record<string, string>>): string {
  const fields = JSON.stringify(readFurther(given, { dialect: DIALECT, place: "response" }));
  return fields === "{}" ? "" : `,${fields.slice(1, -1)}`;
}

/** Limit of cited pages. */
const MAX_CITED = 1000;

/** Adds the page of a citation, by its address, to those of a candidate. */
export function cite(cited: Map<string, string>, { source, title }: Citation): void {
  if (source.case === "url" && cited.size < MAX_CITED && !cited.has(source.value)) cited.set(source.value, title);
}

/** `logprobsResult`. */
export function logprobs(tokens: readonly TokenLogprob[]): string {
  const one = ({ token, logprob }: TopLogprob | TokenLogprob): object => ({ token, logProbability: logprob });
  return JSON.stringify({
    chosenCandidates: tokens.map(one),
    topCandidates: tokens.map(({ top }) => ({ candidates: top.map(one) })),
  });
}
