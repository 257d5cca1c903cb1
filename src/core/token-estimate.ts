import type { Choice, CompletionRequest, Delta } from "../../gen/parley/v1/completion_pb.js";
import type { ContentPart, Message } from "../../gen/parley/v1/message_pb.js";

/**
 * What a prompt consists of, for counting its tokens before anybody has: only the provider knows how it splits text, so what
 * is needed is a figure that it cannot exceed (for money) and one that is about right (for rates, and for completions that
 * nobody counted).
 */
export interface PromptSize {
  /** UTF-8 bytes of everything that is text: messages, reasoning, tool calls and definitions, schemas. */
  readonly textBytes: number;
  readonly pictures: number;
  /** Bytes of recordings and documents. */
  readonly mediaBytes: number;
  readonly messages: number;
  /** Whether tools or a schema are given: providers explain to their models how to use them, in words of their own. */
  readonly instructed: boolean;
  /**
   * Whether nothing here bounds it but the model's context window: a document of a few bytes may have any number of pages,
   * and of what the provider keeps and the request only names, nobody here knows the size.
   */
  readonly unbounded: boolean;
}

// Byte-level vocabularies have a token for every byte, so text has at most one token per byte; English has one per four.
const BYTES_PER_TOKEN = 4;
/** Around each message: its role and its ends. */
const MESSAGE_TOKENS = { bound: 16, estimate: 4 } as const;
/** The dearest of the three dialects' documented ways to count a picture, and a usual one. */
const PICTURE_TOKENS = { bound: 5_000, estimate: 1_500 } as const;
/** How a model is told to use tools or to keep to a schema: documented are a few hundred tokens. */
const MAX_INSTRUCTION_TOKENS = 1_000;
/** Recordings and documents: 32 tokens for a second of speech at 8 kbit/s is the densest that is documented. */
const MEDIA_BYTES_PER_TOKEN = 32;

/** Measures a request's prompt, in one pass. */
export function measurePrompt(request: CompletionRequest): PromptSize {
  const format = request.responseFormat?.format;
  const size = {
    textBytes: 0,
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
    size.textBytes += bytes(kind.value.name) + bytes(kind.value.description) + bytes(definition);
  }
  if (format?.case === "jsonSchema") size.textBytes += bytes(format.value.schemaJson);
  if (request.prediction !== undefined) size.textBytes += bytes(request.prediction);
  return size;
}

/** More tokens than the prompt can have; Infinity where only the model's context window bounds it. */
export function boundTokens({ textBytes, pictures, mediaBytes, messages, instructed, unbounded }: PromptSize): number {
  if (unbounded) return Infinity;
  const instruction = instructed ? MAX_INSTRUCTION_TOKENS : 0;
  return textBytes + pictures * PICTURE_TOKENS.bound + mediaBytes + messages * MESSAGE_TOKENS.bound + instruction;
}

/** About as many tokens as the prompt has. */
export function estimateTokens({ textBytes, pictures, mediaBytes, messages }: PromptSize): number {
  const text = Math.ceil(textBytes / BYTES_PER_TOKEN) + messages * MESSAGE_TOKENS.estimate;
  return text + pictures * PICTURE_TOKENS.estimate + Math.ceil(mediaBytes / MEDIA_BYTES_PER_TOKEN);
}

/** About as many tokens as an answer of so many characters and pictures has. */
export function estimateAnswerTokens({ chars, pictures }: { chars: number; pictures: number }): number {
  return Math.ceil(chars / BYTES_PER_TOKEN) + pictures * PICTURE_TOKENS.estimate;
}

/** What a piece of a streamed answer adds to it. */
export function sizeOfDelta({ content }: Delta): { chars: number; pictures: number } {
  switch (content.case) {
    case "text":
    case "reasoning":
    case "refusal":
      return { chars: content.value.length, pictures: 0 };
    case "toolCall":
      return { chars: content.value.arguments.length + content.value.name.length, pictures: 0 };
    case "image":
      return { chars: 0, pictures: 1 };
    default:
      return { chars: 0, pictures: 0 };
  }
}

/** The size of a whole answer. */
export function sizeOfChoices(choices: readonly Choice[]): { chars: number; pictures: number } {
  let chars = 0;
  let pictures = 0;
  for (const { message } of choices) {
    for (const { content } of message?.content ?? []) {
      if (content.case === "text") chars += content.value.length;
      else if (content.case === "image") pictures += 1;
    }
    for (const call of message?.toolCalls ?? []) chars += call.name.length + call.arguments.length;
    for (const block of message?.reasoning ?? []) chars += block.text.length;
    chars += message?.refusal?.length ?? 0;
  }
  return { chars, pictures };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function addMessage(size: Mutable<PromptSize>, message: Message): void {
  for (const part of message.content) addPart(size, part);
  for (const call of message.toolCalls) size.textBytes += bytes(call.name) + bytes(call.arguments);
  // The text may be a summary; then the signature holds, encrypted, what the model reads and the provider counts.
  for (const { text, redacted, signature } of message.reasoning)
    size.textBytes += bytes(text) + bytes(redacted) + bytes(signature);
  if (message.refusal !== undefined) size.textBytes += bytes(message.refusal);
  if (message.name !== undefined) size.textBytes += bytes(message.name);
}

function addPart(size: Mutable<PromptSize>, { content }: ContentPart): void {
  if (content.case === "text") size.textBytes += bytes(content.value);
  else if (content.case === "image") size.pictures += 1;
  else if (content.case === "audio") {
    size.mediaBytes += content.value.data.length + bytes(content.value.transcript);
    if (content.value.id !== "") size.unbounded = true;
  } else if (content.case === "file") {
    if (content.value.source.case === "data") size.mediaBytes += content.value.source.value.length;
    size.unbounded = true;
  }
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
