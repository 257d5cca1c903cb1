import type { Choice, CompletionRequest, Delta } from "../../gen/parley/v1/completion_pb.js";
import type { ContentPart, Message } from "../../gen/parley/v1/message_pb.js";

/**
 * What a prompt consists of, for counting its tokens before the provider has: only the provider knows how it splits text.
 * What is needed is a figure that it cannot exceed (for money) and one that is about right (for rates, and for completions
 * that were not counted).
 */
export interface PromptSize {
  /** Estimated tokens of everything that is text: messages, reasoning, tool calls and definitions, schemas. May be a fraction. */
  readonly textTokens: number;
  readonly pictures: number;
  /** Bytes of recordings and documents. */
  readonly mediaBytes: number;
  readonly messages: number;
  /** Whether tools or a schema are given: providers explain to their models how to use them, in words of their own. */
  readonly instructed: boolean;
  /**
   * Whether only the model's context window bounds it: a document of a few bytes may have any number of pages, and the size
   * of what the provider keeps and the request only names is not known here.
   */
  readonly unbounded: boolean;
}

/** What went by of an answer. */
export interface AnswerSize {
  /** Estimated tokens of its text. May be a fraction. */
  textTokens: number;
  pictures: number;
}

/** The roles and the ends of a message. */
const MESSAGE_TOKENS = 4;
/** The dearest of the three dialects' documented ways to count a picture, and a usual one. */
const PICTURE_TOKENS = { bound: 5_000, estimate: 1_500 } as const;
/** How a model is told to use tools or to keep to a schema: documented are a few hundred tokens. */
const MAX_INSTRUCTION_TOKENS = 1_000;
/** Recordings and documents: 32 tokens for a second of speech at 8 kbit/s is the densest that is documented. */
const MEDIA_BYTES_PER_TOKEN = 32;

/**
 * About as many tokens as a text has, by its script, possibly a fraction. English and code have about four characters a
 * token; vocabularies know other scripts less well. With the UTF-8 bytes B and UTF-16 units U of a text, (3 B - 2 U) / 4 is
 * 1/4 for an ASCII character, 1 for one of two bytes (Latin with accents, Greek, Cyrillic, Hebrew, Arabic), 7/4 for one of
 * three (CJK, Indic, Thai), and 2 for one of four (emoji). Both figures come without a look at each character.
 */
export function estimateTextTokens(text: string): number {
  return (3 * Buffer.byteLength(text) - 2 * text.length) / 4;
}

/** Measures a request's prompt, in one pass. */
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
 * More tokens than the prompt can have; Infinity where only the model's context window bounds it. `textBytes`: of all that is
 * sent but media. Byte-level vocabularies have a token for every byte, so text has at most one token per byte, and what
 * providers put around messages is shorter than their JSON.
 */
export function boundTokens({ pictures, mediaBytes, instructed, unbounded }: PromptSize, textBytes: number): number {
  if (unbounded) return Infinity;
  return textBytes + pictures * PICTURE_TOKENS.bound + mediaBytes + (instructed ? MAX_INSTRUCTION_TOKENS : 0);
}

/** About as many tokens as the prompt has. */
export function estimateTokens({ textTokens, pictures, mediaBytes, messages }: PromptSize): number {
  const text = Math.ceil(textTokens) + messages * MESSAGE_TOKENS;
  return text + pictures * PICTURE_TOKENS.estimate + Math.ceil(mediaBytes / MEDIA_BYTES_PER_TOKEN);
}

/** About as many tokens as an answer of this size has. */
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

/** The size of a whole answer. */
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
  // The text may be a summary; then the signature holds, encrypted, what the model reads and the provider counts.
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
