import type { Choice, CompletionRequest, Delta } from "../../gen/parley/v1/completion_pb.js";
import type { ContentPart, Message } from "../../gen/parley/v1/message_pb.js";

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
  /** Whether tools or a schema are given: providers add instructions for them. */
  readonly instructed: boolean;
  /**
   * Whether only the context window bounds the tokens: a small document may have many pages, and the size of files that are
   * stored at the provider is unknown.
   */
  readonly unbounded: boolean;
}

/** Size of an answer. */
export interface AnswerSize {
  /** Estimated tokens of its text. May be a fraction. */
  textTokens: number;
  pictures: number;
}

/** Tokens for role and end of a message. */
const MESSAGE_TOKENS = 4;
/** Tokens of an image: the highest documented count of the three dialects, and a usual one. */
const PICTURE_TOKENS = { bound: 5_000, estimate: 1_500 } as const;
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
    instructed: request.tools.length > 0 || format?.case === "jsonSchema",
    unbounded: false,
  };
  for (const message of request.messages) addMessage(size, message);
  for (const { kind } of request.tools) {
    if (kind.case === undefined) continue;
    const definition = kind.case === "function" ? kind.value.parametersJson : kind.value.formatJson;
    addTexts(size, kind.value.name, kind.value.description, definition);
  }
  if (format?.case === "jsonSchema") addTexts(size, format.value.schemaJson, format.value.description);
  addTexts(size, request.prediction);
  return size;
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

/** Estimated tokens of an answer. */
export function estimateAnswerTokens({ textTokens, pictures }: AnswerSize): number {
  return Math.ceil(textTokens) + pictures * PICTURE_TOKENS.estimate;
}

/** Adds a piece of a streamed answer. */
export function addDelta(size: AnswerSize, { content }: Delta): void {
  switch (content.case) {
    case "text":
    case "reasoning":
    case "refusal":
      size.textTokens += estimateTextTokens(content.value);
      return;
    case "toolCall":
      size.textTokens += estimateTextTokens(content.value.name) + estimateTextTokens(content.value.arguments);
      return;
    case "image":
      size.pictures += 1;
      return;
    default:
  }
}

/** Measures a whole answer. */
export function sizeOfChoices(choices: readonly Choice[]): AnswerSize {
  const size: AnswerSize = { textTokens: 0, pictures: 0 };
  for (const { message } of choices) {
    for (const { content } of message?.content ?? []) {
      if (content.case === "text") addTexts(size, content.value);
      else if (content.case === "image") size.pictures += 1;
    }
    for (const call of message?.toolCalls ?? []) addTexts(size, call.name, call.arguments);
    for (const block of message?.reasoning ?? []) addTexts(size, block.text);
    addTexts(size, message?.refusal);
  }
  return size;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function addMessage(size: Mutable<PromptSize>, message: Message): void {
  for (const part of message.content) addPart(size, part);
  for (const call of message.toolCalls) addTexts(size, call.id, call.name, call.arguments);
  // The text may be a summary; then the signature holds the encrypted reasoning that the provider counts.
  for (const { text, redacted, signature } of message.reasoning) addTexts(size, text, redacted, signature);
  addTexts(size, message.refusal, message.name, message.toolCallId);
}

function addPart(size: Mutable<PromptSize>, { content }: ContentPart): void {
  if (content.case === "text") addTexts(size, content.value);
  else if (content.case === "image") size.pictures += 1;
  else if (content.case === "audio") {
    size.mediaBytes += content.value.data.length;
    addTexts(size, content.value.transcript);
    if (content.value.id !== "") size.unbounded = true;
  } else if (content.case === "file") {
    if (content.value.source.case === "data") size.mediaBytes += content.value.source.value.length;
    size.unbounded = true;
  }
}

function addTexts(size: { textTokens: number }, ...texts: readonly (string | undefined)[]): void {
  for (const text of texts) if (text !== undefined && text !== "") size.textTokens += estimateTextTokens(text);
}
