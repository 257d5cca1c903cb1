import type { Choice, CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Audio, Image, Message, Part } from "../../gen/parley/v1/message_pb.js";

/**
 * Size of a prompt, for estimating its tokens: only the provider knows its tokenizer. Budgets need an upper bound; rates and
 * completions without a count need a typical figure.
 */
export interface PromptSize {
  /** Estimated tokens of all text: messages, reasoning, tool calls and definitions, schemas. May be a fraction. */
  readonly textTokens: number;
  readonly pictures: number;
  /** Bytes of audio and documents. */
  readonly mediaBytes: number;
  readonly messages: number;
  /** Number of texts that may each fill the context window: 1 for a conversation, the inputs for embeddings. */
  readonly windows: number;
  /** Whether tools or a schema are given: providers add instructions for them. */
  readonly instructed: boolean;
  /** Bytes of a predicted answer: its tokens that the model rejects are billed as output. */
  readonly predictedBytes: number;
  /**
   * Whether only the context window bounds the tokens: a small document may have many pages, and the size of files that are
   * stored at the provider is unknown.
   */
  readonly unbounded: boolean;
  /** Whether it has documents. Default: none. */
  readonly hasDocuments?: boolean | undefined;
}

/** Size of an answer. */
export interface AnswerSize {
  /** Estimated tokens of its text. May be a fraction. */
  textTokens: number;
  /** Part of `textTokens`: refusals, some of which are in the gateway's words. */
  refusalTokens: number;
  /** Finished pictures. */
  pictures: number;
  /** Pictures of which a first preview was received, finished or not. */
  picturesBegun: number;
  /** Whether it has speech, whose tokens are not estimated. */
  hasSpeech: boolean;
}

/** The size of an answer before anything was received. */
export const NOTHING_RECEIVED: Readonly<AnswerSize> = {
  textTokens: 0,
  refusalTokens: 0,
  pictures: 0,
  picturesBegun: 0,
  hasSpeech: false,
};

/** Tokens for role and end of a message. */
const MESSAGE_TOKENS = 4;
/** Upper bound of the tokens that a model adds to an embedding input, such as begin and end tokens. */
const INPUT_TOKENS = 4;
/**
 * Tokens of an image: the highest documented count of the three dialects, which is that of eight tiles for gpt-4o-mini (2,833 and
 * 5,667 for each, OpenAI's guide to images and vision), and a usual one.
 */
const PICTURE_TOKENS = { bound: 48_169, estimate: 1_500 } as const;
/** Instructions for tools or a schema: providers document a few hundred tokens. */
const MAX_INSTRUCTION_TOKENS = 1_000;
/** Audio and documents: the highest documented density is 32 tokens per second of speech at 8 kbit/s. */
const MEDIA_BYTES_PER_TOKEN = 32;

/**
 * Estimated tokens of a text by its script, possibly a fraction. English and code have about four characters per token;
 * other scripts need more tokens. With the UTF-8 bytes B and UTF-16 units U of a text, (3 B - 2 U) / 4 is
 * 1/4 for an ASCII character, 1 for one of two bytes (Latin with accents, Greek, Cyrillic, Hebrew, Arabic), 7/4 for one of
 * three (CJK, Indic, Thai), and 2 for one of four (emoji). Both lengths are known without reading each character.
 */
export function estimateTextTokens(text: string): number {
  return (3 * Buffer.byteLength(text) - 2 * text.length) / 4;
}

/** Measures the prompt of a request in one pass. */
export function measurePrompt(request: CompletionRequest): PromptSize {
  const format = request.responseFormat?.format;
  const size = {
    textTokens: 0,
    pictures: 0,
    mediaBytes: 0,
    messages: request.messages.length,
    windows: 1,
    instructed: request.tools.some(({ kind }) => kind.case !== undefined) || format?.case === "jsonSchema",
    predictedBytes: request.prediction === undefined ? 0 : Buffer.byteLength(request.prediction),
    unbounded: false,
    hasDocuments: false,
  };
  for (const message of request.messages) addMessage(size, message);
  for (const { kind } of request.tools) {
    if (kind.case === undefined) continue;
    if (kind.case === "native") {
      // Its results become tokens of the prompt.
      size.unbounded = true;
      addTexts(size, kind.value.json);
      continue;
    }
    const definition = kind.case === "function" ? kind.value.parametersJson : kind.value.formatJson;
    addTexts(size, kind.value.name, kind.value.description, definition);
  }
  if (format?.case === "jsonSchema") addTexts(size, format.value.schemaJson, format.value.description);
  addTexts(size, request.prediction);
  return size;
}

/** Measures the inputs of an embedding request, each of which has at least one token. */
export function measureInputs(inputs: readonly string[]): PromptSize {
  let textTokens = 0;
  for (const input of inputs) textTokens += Math.ceil(estimateTextTokens(input));
  const windows = inputs.length;
  const none = { pictures: 0, mediaBytes: 0, messages: 0, predictedBytes: 0 };
  return { ...none, textTokens, windows, instructed: false, unbounded: false };
}

/** Bytes of the inputs of an embedding request with those of tokens that a model adds: `SentSize.textBytes`. */
export function bytesOfInputs(inputs: readonly string[]): number {
  let bytes = inputs.length * INPUT_TOKENS;
  for (const input of inputs) bytes += Buffer.byteLength(input);
  return bytes;
}

/**
 * Upper bound of the prompt tokens; Infinity where only the context window bounds them. `textBytes`: the body without media.
 * Byte-level tokenizers need at most one token per byte, and providers add less text around messages than their JSON has.
 */
export function boundTokens({ pictures, mediaBytes, instructed, unbounded }: PromptSize, textBytes: number): number {
  if (unbounded) return Infinity;
  return textBytes + pictures * PICTURE_TOKENS.bound + mediaBytes + (instructed ? MAX_INSTRUCTION_TOKENS : 0);
}

/** Estimated tokens of a prompt. */
export function estimateTokens({ textTokens, pictures, mediaBytes, messages }: PromptSize): number {
  const text = Math.ceil(textTokens) + messages * MESSAGE_TOKENS;
  return text + pictures * PICTURE_TOKENS.estimate + Math.ceil(mediaBytes / MEDIA_BYTES_PER_TOKEN);
}

/** Tokens of the pictures of an answer: an estimate, but at least `each` for each of them. */
export function estimatePictures(pictures: number, each = 0): number {
  return pictures * Math.max(PICTURE_TOKENS.estimate, each);
}

/** Adds a chunk of a streamed answer. */
export function addChunk(size: AnswerSize, { event }: CompletionChunk): void {
  if (event.case === "partDelta") {
    const { content } = event.value;
    if (content.case === "refusal") addRefusal(size, content.value);
    else if (content.case === "audio") size.hasSpeech = true;
    else if (typeof content.value === "string") size.textTokens += estimateTextTokens(content.value);
  } else if (event.case === "partialImage") {
    if (event.value.index === 0) size.picturesBegun += 1;
  } else if (event.case === "partStart") {
    const kind = event.value.part?.kind;
    if (kind?.case === "image") size.pictures += 1;
    else if (kind?.case === "toolCall") addTexts(size, kind.value.name);
  }
}

/** Measures a whole answer. */
export function sizeOfChoices(choices: readonly Choice[]): AnswerSize {
  const size: AnswerSize = { ...NOTHING_RECEIVED };
  for (const { message } of choices) {
    for (const { kind } of message?.parts ?? []) {
      if (kind.case === "text") addTexts(size, kind.value);
      else if (kind.case === "refusal") addRefusal(size, kind.value);
      else if (kind.case === "image") size.pictures += 1;
      else if (kind.case === "audio") size.hasSpeech = true;
      else if (kind.case === "toolCall") addTexts(size, kind.value.name, kind.value.input.value);
      else if (kind.case === "reasoning") addTexts(size, kind.value.text);
      else if (kind.case === "native") addTexts(size, kind.value.json);
    }
  }
  return size;
}

function addRefusal(size: AnswerSize, text: string): void {
  const tokens = estimateTextTokens(text);
  size.textTokens += tokens;
  size.refusalTokens += tokens;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function addMessage(size: Mutable<PromptSize>, { name, parts }: Message): void {
  for (const part of parts) addPart(size, part);
  addTexts(size, name);
}

function addPart(size: Mutable<PromptSize>, { kind, signature }: Part): void {
  switch (kind.case) {
    case "text":
    case "refusal":
      return addTexts(size, kind.value);
    case "image":
      size.pictures += 1;
      if (!isPicture(kind.value)) size.unbounded = true;
      return;
    case "audio":
      if (kind.value.source.case === "data") size.mediaBytes += kind.value.source.value.length;
      if (!isDense(kind.value)) size.unbounded = true;
      return addTexts(size, kind.value.transcript);
    case "video":
    case "file":
      if (kind.value.source.case === "data") size.mediaBytes += kind.value.source.value.length;
      size.unbounded = true;
      size.hasDocuments ||= kind.case === "file";
      return;
    case "reasoning":
      // The text may be a summary; then the signature holds the encrypted reasoning that the provider counts.
      return addTexts(size, kind.value.text, kind.value.redacted, signature);
    case "toolCall":
      return addTexts(size, kind.value.id, kind.value.name, kind.value.input.value);
    case "toolResult":
      addTexts(size, kind.value.toolCallId);
      for (const part of kind.value.parts) addPart(size, part);
      return;
    case "native":
      // A native part may reference a document at the provider.
      size.unbounded = true;
      size.hasDocuments ||= mayHaveDocuments(kind.value.json);
      return addTexts(size, kind.value.json);
    case undefined:
  }
}

/** JSON with the name of a document in a dialect, such as `input_file`, which may have escapes. */
const MAY_HAVE_DOCUMENTS = /"(?:input_)?(?:file|document)|\\u/i;
/** Fields with a document, such as `file_id`, and types of parts that are documents. */
const DOCUMENT_FIELD = /^(?:file|document)(?:_(?:id|url|data))?$/i;
const DOCUMENT_TYPE = /^(?:input_)?(?:file|document)(?:_url)?$/i;
const TYPE = /^type$/i;

/** Whether a native part may have documents. Its texts, such as the output of a command, may name files. */
function mayHaveDocuments(json: string): boolean {
  if (!MAY_HAVE_DOCUMENTS.test(json)) return false;
  const values: unknown[] = [JSON.parse(json)];
  for (const value of values) {
    if (typeof value !== "object" || value === null) continue;
    for (const [name, inner] of Object.entries(value)) {
      if (DOCUMENT_FIELD.test(name) || (TYPE.test(name) && DOCUMENT_TYPE.test(String(inner)))) return true;
      values.push(inner);
    }
  }
  return false;
}

/** Formats of WAV without compression beyond a byte per sample: PCM, floating point, A-law and mu-law. */
const UNCOMPRESSED: ReadonlySet<number> = new Set([1, 3, 6, 7]);

/**
 * Whether an audio part is WAV with at least 1,000 bytes per second, by its media type and first bytes. Compressed audio may hold
 * hours of silence in a few kilobytes, even after a tag, an MP3 frame or a WAV header. A part with an ID references an earlier
 * answer, whose length is unknown.
 */
function isDense({ id, source, mediaType }: Audio): boolean {
  if (id !== "" || source.case !== "data" || !/^audio\/(?:x-|vnd\.)?wave?\b/i.test(mediaType)) return false;
  const head = headOf(source.value, 28);
  if (head.length < 28 || head.toString("latin1", 0, 4) !== "RIFF" || head.toString("latin1", 8, 16) !== "WAVEfmt ")
    return false;
  return UNCOMPRESSED.has(head.readUInt16LE(20)) && head.readUInt32LE(24) >= 1_000;
}

/** First bytes of PNG, JPEG, GIF and WebP. */
const PICTURE = /^(?:\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP)/s;

/**
 * Whether an image part is a picture, by its media type and first bytes. Some servers accept documents and videos in an image part,
 * even after the header of a picture. Image URLs are checked by the dialect.
 */
function isPicture({ source, mediaType }: Image): boolean {
  if (source.case !== "data") return true;
  if (!/^(?:image\/(?:png|jpe?g|gif|webp))?$/i.test(mediaType)) return false;
  return PICTURE.test(headOf(source.value, 12).toString("latin1"));
}

function headOf({ buffer, byteOffset, byteLength }: Uint8Array, bytes: number): Buffer {
  return Buffer.from(buffer, byteOffset, Math.min(byteLength, bytes));
}

function addTexts(size: { textTokens: number }, ...texts: readonly (string | undefined)[]): void {
  for (const text of texts) if (text !== undefined && text !== "") size.textTokens += estimateTextTokens(text);
}
