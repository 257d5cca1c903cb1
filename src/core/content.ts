import { create } from "@bufbuild/protobuf";
import {
  type Choice,
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  type PartDelta,
  type ResponseFormat,
} from "../../gen/parley/v1/completion_pb.js";
import { type Audio, type Message, type Part, Role } from "../../gen/parley/v1/message_pb.js";
import type { Tool } from "../../gen/parley/v1/tool_pb.js";
import { EncodedSource } from "../encoding/base64.ts";
import { hideCredentials } from "../encoding/hide-keys.ts";
import type { Call } from "./call.ts";
import { AnswerBuilder } from "./answer-builder.ts";
import { deltaChunk, startChunk, toPart } from "./chunks.ts";

/** Prompt and answer of a completion, as they are stored. */
export interface CompletionContent {
  readonly accountId: string;
  readonly completionId: string;
  /** The conversation, the tools and the parameters. */
  readonly request: CompletionRequest;
  readonly choices: readonly Choice[];
  /** Whether the request exceeded MAX_CONTENT_BYTES. */
  readonly isRequestCut: boolean;
  readonly isAnswerCut: boolean;
  /** Size of the texts. */
  readonly bytes: number;
}

/** Stores prompts and answers. */
export interface ContentStorage {
  /** Takes the content and writes it later. Returns at once and never throws: content that cannot be written is counted. */
  store(content: CompletionContent): void;
}

/** Limit of what is stored of a conversation, and of an answer: their texts in UTF-8, with PART_BYTES for each part, message and tool. */
export const MAX_CONTENT_BYTES = 256 * 1024;
const PART_BYTES = 16;

/** Characters of a text beyond the limit that are searched for a credential, which may begin before it. */
const MARGIN_CHARS = 1_024;

/** Records the content of one completion: a bounded copy, which does not keep the request or the answer in memory. */
export class ContentRecorder {
  readonly #storage: ContentStorage;
  readonly #call: Pick<Call, "principal" | "completionId">;
  readonly #prompt = new StoredTexts();
  readonly #answer = new StoredTexts();
  #request: CompletionRequest | undefined;
  #streamed: StreamedAnswer | undefined;
  #choices: readonly Choice[] = [];
  #isAdmitted = false;

  constructor(storage: ContentStorage, call: Pick<Call, "principal" | "completionId">) {
    this.#storage = storage;
    this.#call = call;
  }

  /** Records the request, before its messages are removed. */
  asked(request: CompletionRequest): void {
    this.#request = toStoredRequest(request, this.#prompt);
  }

  /** Call it when the completion gets a ledger entry: the content of requests refused before that is not stored. */
  admitted(): void {
    this.#isAdmitted = true;
  }

  /** Records a part of a stream. */
  add(chunks: readonly CompletionChunk[]): void {
    this.#streamed ??= new StreamedAnswer(this.#answer);
    for (const chunk of chunks) this.#streamed.add(chunk);
  }

  /** Records a whole answer. */
  answered(choices: readonly Choice[]): void {
    this.#choices = toStoredChoices(choices, this.#answer);
  }

  /** Hands the content to the storage. */
  end(): void {
    if (!this.#isAdmitted || this.#request === undefined) return;
    const choices = this.#streamed?.choices() ?? this.#choices;
    const { principal, completionId } = this.#call;
    this.#storage.store({
      accountId: principal.accountId,
      completionId,
      request: this.#request,
      choices,
      isRequestCut: this.#prompt.isCut,
      isAnswerCut: this.#answer.isCut,
      bytes: this.#prompt.bytes + this.#answer.bytes,
    });
  }
}

/** Texts within MAX_CONTENT_BYTES, without credentials. */
class StoredTexts {
  isCut = false;
  bytes = 0;

  get #left(): number {
    return MAX_CONTENT_BYTES - this.bytes;
  }

  /** A copy of the text, or of its beginning where it does not fit. */
  take(text: string): string {
    const read = text.length > this.#left + MARGIN_CHARS ? text.slice(0, this.#left + MARGIN_CHARS) : text;
    const encoded = Buffer.from(hideCredentials(read));
    if (encoded.length <= this.#left && read.length === text.length) {
      this.bytes += encoded.length;
      return encoded.toString();
    }
    const kept = encoded.subarray(0, this.#left);
    this.cut();
    // Removes a character that was cut in two.
    return kept.toString().replace(/\uFFFD$/, "");
  }

  /** Counts a part, message or tool. Returns whether it fits. */
  takePart(): boolean {
    if (this.#left > PART_BYTES) this.bytes += PART_BYTES;
    else this.cut();
    return !this.isCut;
  }

  /** Leaves out everything that follows. */
  cut(): void {
    this.isCut = true;
    this.bytes = MAX_CONTENT_BYTES;
  }
}

/** Parameters of a request that are stored unchanged. Parameters with texts of any length are cut, or left out. */
const PARAMETERS = [
  "modalities",
  "parallelToolCalls",
  "maxOutputTokens",
  "choiceCount",
  "temperature",
  "topP",
  "topK",
  "seed",
  "frequencyPenalty",
  "presencePenalty",
  "reasoning",
  "verbosity",
  "strict",
] as const satisfies readonly (keyof CompletionRequest)[];

/**
 * What is stored of a request. Of a conversation that is too large, these are left out: tools first, then the earliest messages; system
 * messages at its beginning stay.
 */
function toStoredRequest(request: CompletionRequest, texts: StoredTexts): CompletionRequest {
  const { messages, tools, toolChoice, responseFormat, imageOptions } = request;
  const take = (text: string): string => texts.take(text);
  const parameters = {
    ...Object.fromEntries(PARAMETERS.map((name) => [name, request[name]])),
    model: take(request.model),
    fallbackModels: request.fallbackModels.map(take),
    stopSequences: request.stopSequences.map(take),
    ...(tools.length > 0 && toolChoice !== undefined && { toolChoice }),
    ...(responseFormat !== undefined && { responseFormat: toStoredFormat(responseFormat, texts) }),
    ...(imageOptions !== undefined && {
      imageOptions: { aspectRatio: take(imageOptions.aspectRatio), size: take(imageOptions.size) },
    }),
  };
  const first = messages.findIndex(({ role }) => role !== Role.SYSTEM);
  const system = first === -1 ? messages : messages.slice(0, first);
  const instructions = toStoredMessages(system, texts);
  const conversation = toStoredMessages(messages.slice(system.length).toReversed(), texts).toReversed();
  return create(CompletionRequestSchema, {
    ...parameters,
    messages: [...instructions, ...conversation],
    tools: toStoredTools(tools, texts),
  });
}

function toStoredFormat({ format }: ResponseFormat, texts: StoredTexts): ResponseFormat {
  if (format.case !== "jsonSchema") return { $typeName: "parley.v1.ResponseFormat", format };
  const { name, description, schemaJson } = format.value;
  const value = {
    ...format.value,
    name: texts.take(name),
    description: texts.take(description),
    schemaJson: texts.take(schemaJson),
  };
  return { $typeName: "parley.v1.ResponseFormat", format: { case: "jsonSchema", value } };
}

function toStoredMessages(messages: readonly Message[], texts: StoredTexts): Message[] {
  const stored: Message[] = [];
  for (const { role, parts, name } of messages) {
    if (!texts.takePart()) break;
    stored.push({
      $typeName: "parley.v1.Message",
      role,
      parts: toStoredParts(parts, texts),
      ...(name !== undefined && { name: texts.take(name) }),
    });
  }
  return stored;
}

function toStoredTools(tools: readonly Tool[], texts: StoredTexts): Tool[] {
  const stored: Tool[] = [];
  for (const { kind } of tools) {
    if (!texts.takePart()) break;
    stored.push({ $typeName: "parley.v1.Tool", kind: toStoredTool(kind, texts) });
  }
  return stored;
}

function toStoredTool(kind: Tool["kind"], texts: StoredTexts): Tool["kind"] {
  const take = (text: string): string => texts.take(text);
  switch (kind.case) {
    case "function": {
      const { name, description, parametersJson } = kind.value;
      const value = { name: take(name), description: take(description), parametersJson: take(parametersJson) };
      return { case: "function", value: { ...kind.value, ...value } };
    }
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const value = { name: take(name), description: take(description), formatJson: take(formatJson) };
      return { case: "custom", value: { ...kind.value, ...value } };
    }
    case "native":
      return {
        case: "native",
        value: { ...kind.value, dialect: take(kind.value.dialect), json: take(kind.value.json) },
      };
    case undefined:
      return kind;
  }
}

function toStoredParts(parts: readonly Part[], texts: StoredTexts): Part[] {
  const stored: Part[] = [];
  for (const { kind } of parts) {
    if (!texts.takePart()) break;
    stored.push(toPart(toStoredKind(kind, texts)));
  }
  return stored;
}

/** Texts and calls of a part. Media are stored as type and size. Signatures, citations and log probabilities are left out. */
function toStoredKind(kind: Part["kind"], texts: StoredTexts, streamedBytes?: number): Part["kind"] {
  const take = (text: string): string => texts.take(text);
  switch (kind.case) {
    case "text":
    case "refusal":
      return { case: kind.case, value: take(kind.value) };
    case "reasoning":
      return { case: "reasoning", value: { ...kind.value, text: take(kind.value.text), redacted: "" } };
    case "toolCall": {
      const { id, name, input } = kind.value;
      const stored = input.case === undefined ? input : { case: input.case, value: take(input.value) };
      return { case: "toolCall", value: { ...kind.value, id: take(id), name: take(name), input: stored } };
    }
    case "toolResult": {
      const { toolCallId, parts } = kind.value;
      const stored = { toolCallId: take(toolCallId), parts: toStoredParts(parts, texts) };
      return { case: "toolResult", value: { ...kind.value, ...stored } };
    }
    case "native":
      return {
        case: "native",
        value: { ...kind.value, dialect: take(kind.value.dialect), json: take(kind.value.json) },
      };
    case "audio": {
      const { transcript } = kind.value;
      const described = describeMedia(kind, streamedBytes);
      return { case: "text", value: take(transcript === "" ? described : `${described}\n${transcript}`) };
    }
    case "image":
    case "video":
    case "file":
      return { case: "text", value: take(describeMedia(kind)) };
    case undefined:
      return kind;
  }
}

type Media = Extract<Part["kind"], { case: "image" | "audio" | "video" | "file" }>;

/** Text in place of a picture, a recording, a video or a document: `[image/png, 34 KB: not stored]`. */
function describeMedia({ case: kind, value: { mediaType, source } }: Media, streamedBytes = 0): string {
  if (source.case === "url" || source.case === "id") return `[${kind} ${source.value}: not stored]`;
  const bytes = source instanceof EncodedSource ? sizeOf(source) : (source.value?.length ?? streamedBytes);
  return `[${mediaType || kind}, ${Math.ceil(bytes / 1_000)} KB: not stored]`;
}

function sizeOf({ base64: { pieces } }: EncodedSource): number {
  return (pieces.reduce((chars, { length }) => chars + length, 0) * 3) / 4;
}

/** `streamedBytes`: bytes of the recordings of a stream, by `placeOf`. */
function toStoredChoices(
  choices: readonly Choice[],
  texts: StoredTexts,
  streamedBytes?: ReadonlyMap<string, number>,
): Choice[] {
  const stored: Choice[] = [];
  for (const { index, message, finishReason, nativeFinishReason, stopSequence } of choices) {
    if (!texts.takePart()) break;
    const parts: Part[] = [];
    for (const [partIndex, { kind }] of (message?.parts ?? []).entries()) {
      if (!texts.takePart()) break;
      parts.push(toPart(toStoredKind(kind, texts, streamedBytes?.get(placeOf({ choiceIndex: index, partIndex })))));
    }
    stored.push({
      $typeName: "parley.v1.Choice",
      index,
      message: { $typeName: "parley.v1.Message", role: Role.ASSISTANT, parts },
      finishReason,
      nativeFinishReason,
      stopSequence: texts.take(stopSequence),
      providerDetailsJson: {},
    });
  }
  return stored;
}

type PartPlace = Pick<PartDelta, "choiceIndex" | "partIndex">;

function placeOf({ choiceIndex, partIndex }: PartPlace): string {
  return `${choiceIndex}.${partIndex}`;
}

/** The answer of a stream, up to MAX_CONTENT_BYTES characters, without the bytes of pictures and recordings. */
class StreamedAnswer {
  readonly #texts: StoredTexts;
  readonly #builder = new AnswerBuilder();
  readonly #recordings = new Map<string, number>();
  #chars = 0;
  #isFull = false;

  constructor(texts: StoredTexts) {
    this.#texts = texts;
  }

  add(chunk: CompletionChunk): void {
    const { event } = chunk;
    if (event.case === "choiceFinish") return this.#builder.add(chunk);
    if ((event.case !== "partStart" && event.case !== "partDelta") || !this.#hasRoom(event)) return;
    if (event.case === "partDelta") return this.#addDelta(event.value);
    const { part } = event.value;
    if (part === undefined) return;
    const kind = this.#withoutBytes(part.kind, event.value);
    this.#builder.add(startChunk({ ...event.value, part: toPart(kind) }));
  }

  choices(): Choice[] {
    const choices = toStoredChoices(this.#builder.build().choices, this.#texts, this.#recordings);
    if (this.#isFull) this.#texts.cut();
    return choices;
  }

  #withoutBytes(kind: Part["kind"], place: PartPlace): Part["kind"] {
    if (kind.case === "image" || kind.case === "video" || kind.case === "file")
      return { case: "text", value: describeMedia(kind) };
    return kind.case === "audio" ? { case: "audio", value: this.#counted(kind.value, place) } : kind;
  }

  /** A piece of a recording without its bytes. */
  #counted(audio: Audio, place: PartPlace): Audio {
    const { source } = audio;
    if (source.case !== "data") return audio;
    const at = placeOf(place);
    this.#recordings.set(at, (this.#recordings.get(at) ?? 0) + source.value.length);
    return { ...audio, source: { case: undefined } };
  }

  #addDelta(delta: PartDelta): void {
    const { content } = delta;
    const counted = content.case === "audio" ? { ...content, value: this.#counted(content.value, delta) } : content;
    this.#builder.add(deltaChunk(delta, counted));
  }

  #hasRoom({ case: kind, value }: Extract<CompletionChunk["event"], { case: "partStart" | "partDelta" }>): boolean {
    if (this.#chars > MAX_CONTENT_BYTES) {
      this.#isFull = true;
      return false;
    }
    if (kind === "partStart") this.#chars += PART_BYTES;
    else if (typeof value.content.value === "string") this.#chars += value.content.value.length;
    else if (value.content.case === "audio") this.#chars += value.content.value.transcript.length;
    return true;
  }
}
