import { create } from "@bufbuild/protobuf";
import {
  type Choice,
  type ChoiceFinish,
  type CompletionChunk,
  FinishReason,
  type PartDelta,
  type PartFinish,
  type PartStart,
} from "../../gen/parley/v1/completion_pb.js";
import {
  type Audio,
  AudioSchema,
  type Citation,
  type NativeBlock,
  type Part,
  Role,
  type TokenLogprob,
  type ToolCall,
} from "../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { Failure } from "./failure.ts";
import type { Answer } from "./provider.ts";
import { EncodedSource } from "../encoding/base64.ts";
import { MAX_PARTS } from "./validate.ts";

/*
 * Plain objects of the shape that `create` returns. An answer has thousands of chunks, and `create` iterates over all fields
 * of a message. The compiler reports a missing field.
 */

/** A part of a message. */
export function toPart(kind: Part["kind"], signature = "", details: Part["providerDetailsJson"] = {}): Part {
  return {
    $typeName: "parley.v1.Part",
    kind,
    citations: [],
    signature,
    logprobs: [],
    providerDetailsJson: details,
  };
}

/** Where a part is in an answer. */
type PartPlace = Pick<PartDelta, "choiceIndex" | "partIndex">;

/** A chunk that begins a part. */
export function startChunk(value: PartStart): CompletionChunk {
  return toChunk({ case: "partStart", value });
}

/** A chunk that adds `content` to a part. */
export function deltaChunk(
  { choiceIndex, partIndex }: PartPlace,
  content: PartDelta["content"],
  logprobs: TokenLogprob[] = [],
): CompletionChunk {
  const value: PartDelta = { $typeName: "parley.v1.PartDelta", choiceIndex, partIndex, content, logprobs };
  return toChunk({ case: "partDelta", value });
}

/** A provider's finish reason. Values of another shape are not passed on, because they could be a credential or a text. */
const NATIVE_REASON = /^[A-Za-z_]{1,64}$/;

/** A chunk that ends a choice. */
export function finishChunk(choiceIndex: number, ending: Ending): CompletionChunk {
  const { reason, native, stopSequence = "", details = {} } = ending;
  const value: ChoiceFinish = {
    $typeName: "parley.v1.ChoiceFinish",
    choiceIndex,
    finishReason: reason,
    nativeFinishReason: NATIVE_REASON.test(native) ? native : "",
    stopSequence,
    providerDetailsJson: details,
  };
  return toChunk({ case: "choiceFinish", value });
}

/** Limit of an answer's native events, which the contract has no message for, in UTF-16 units of their JSON. */
const MAX_EVENT_CHARS = 1024 * 1024;
/** Units that an event counts in addition to its JSON. */
const EVENT_CHARS = 64;

const toBlock = (dialect: string, json: string): NativeBlock => ({ $typeName: "parley.v1.NativeBlock", dialect, json });

/** A chunk with the provider's token counts. */
export function usageChunk(usage: Usage): CompletionChunk {
  return toChunk({ case: "usage", value: usage });
}

/** A chunk of a stream. */
export function toChunk(event: CompletionChunk["event"]): CompletionChunk {
  return { $typeName: "parley.v1.CompletionChunk", event };
}

/** How a choice ended. */
export interface Ending {
  readonly reason: FinishReason;
  /** The provider's finish reason; left out unless it matches NATIVE_REASON. */
  readonly native: string;
  /** Default: empty. */
  readonly stopSequence?: string;
  /** `Choice.provider_details_json`. Default: none. */
  readonly details?: Record<string, string>;
}

/** A native block that arrived whole. */
interface WholeBlock {
  readonly dialect: string;
  readonly json: string;
  /** JSON of the native events about the block. Default: none. */
  readonly events?: readonly string[];
}

/** Facts of a tool call that are known at its start. */
interface BegunCall {
  readonly id: string;
  readonly name: string;
  /** Default: a function. */
  readonly custom?: boolean;
  /** `Part.provider_details_json`. Default: none. */
  readonly details?: Record<string, string>;
}

/** Facts of a part that are known only at its end. */
interface PartEnding {
  /** Default: empty. */
  readonly signature?: string;
  /** `Part.provider_details_json`. Default: none. */
  readonly details?: Record<string, string>;
}

type InputCase = "argumentsJson" | "customInput";

/** Kinds of parts that arrive in pieces without an identity: a piece of another kind starts another part. */
type Flowing = "text" | "reasoning" | "refusal" | "audio";

/** A piece of text, reasoning or refusal. */
export interface WrittenText {
  readonly case: "text" | "reasoning" | "refusal";
  readonly value: string;
}

/** The failure of an answer with more than MAX_PARTS parts. */
export function tooManyParts(): Failure {
  return new Failure("upstream_protocol", `The provider's answer has more than ${MAX_PARTS} parts.`);
}

/**
 * Limit of keys and values in the arguments and native blocks of an answer, which formats parse: a model that writes 100,000 tokens of
 * arguments stays below it.
 */
const MAX_ANSWER_VALUES = 200_000;

/** Limit of the fields of an answer that the contract does not have, by `sizeOfKept`: they are kept, and written at the end of their part. */
const MAX_FURTHER_CHARS = 1024 * 1024;

/** Limit of the log probabilities that wait for their content: in a whole answer those of a choice come first. */
const MAX_HELD_LOGPROBS = 200_000;

/** Limits the parts of an answer: each holds some hundred bytes, and a message with more could not be sent back. */
export class PartBudget {
  #taken = 0;
  #values = 0;
  #eventChars = 0;
  #furtherChars = 0;
  #heldLogprobs = 0;

  take(): void {
    if (++this.#taken > MAX_PARTS) throw tooManyParts();
  }

  /** Counts a native event. Returns whether there is room for it. */
  takeEvent(json: string): boolean {
    this.#eventChars += json.length + EVENT_CHARS;
    return this.#eventChars <= MAX_EVENT_CHARS;
  }

  /** Whether there is room for all these events. */
  hasRoomFor(events: readonly string[]): boolean {
    return events.reduce((chars, { length }) => chars + length + EVENT_CHARS, this.#eventChars) <= MAX_EVENT_CHARS;
  }

  /** Counts kept fields by `sizeOfKept`; a negative number for those that are dropped. Returns whether there is room; if not, counts nothing. */
  takeFurther(chars: number): boolean {
    if (chars > 0 && this.#furtherChars + chars > MAX_FURTHER_CHARS) return false;
    this.#furtherChars += chars;
    return true;
  }

  /** As `takeFurther`, for log probabilities that wait for their content. */
  holdLogprobs(count: number): boolean {
    if (count > 0 && this.#heldLogprobs + count > MAX_HELD_LOGPROBS) return false;
    this.#heldLogprobs += count;
    return true;
  }

  /** Counts keys and values that are kept until the end of their block. Throws `upstream_protocol` beyond MAX_ANSWER_VALUES. */
  takeValues(values: number): void {
    this.#values += values;
    this.#requireRoom();
  }

  /**
   * Counts the keys and values of JSON, which may come in pieces; punctuation in strings counts too. Throws `upstream_protocol`
   * beyond MAX_ANSWER_VALUES.
   */
  takeJson(json: string): void {
    for (let at = 0; at < json.length; at++) {
      const char = json.charCodeAt(at);
      if (char === COMMA || char === COLON || char === BRACKET || char === BRACE) this.#values += 1;
    }
    this.#requireRoom();
  }

  #requireRoom(): void {
    if (this.#values > MAX_ANSWER_VALUES)
      throw new Failure("upstream_protocol", "The arguments or blocks in the provider's answer are too complex.");
  }
}

const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Appends the chunks of one choice: starts, numbers and finishes its parts. Used by all dialects, so that every stream follows the
 * grammar of `CompletionService.Stream`. Throws `upstream_protocol` for more parts than a message may have.
 */
export class ChoiceWriter {
  readonly #index: number;
  readonly #budget: PartBudget;
  #parts = 0;
  #citations = 0;
  /** Events that came before any part. */
  #early: CompletionChunk[] | undefined;
  /** Kind of the last part, while pieces may be added to it. */
  #flowing: Flowing | undefined;
  /** `Part.provider_details_json` of the text or reasoning that begins next. */
  #next: Record<string, string> | undefined;
  /** Reads the details of the text or reasoning in progress that are known only at its end. */
  #atEnd: (() => Record<string, string>) | undefined;
  /** Unfinished tool calls: the kind of their input, by part index. Created with the first call. */
  #calls: Map<number, InputCase> | undefined;

  /** `budget`: shared by the choices of an answer. */
  constructor(index: number, budget = new PartBudget()) {
    this.#index = index;
    this.#budget = budget;
  }

  get #last(): PartPlace {
    return { choiceIndex: this.#index, partIndex: this.#parts - 1 };
  }

  /** Kind of the last part, if more pieces of it continue it. */
  get flowing(): Flowing | undefined {
    return this.#flowing;
  }

  /** Whether any part was started. */
  get begun(): boolean {
    return this.#parts > 0;
  }

  /** Appends text to the last part, or starts a part with it. Ignores an empty one. */
  text(content: WrittenText, out: CompletionChunk[], logprobs?: TokenLogprob[]): void {
    if (content.value === "" && logprobs === undefined) return;
    this.#flow(content.case, out);
    out.push(deltaChunk(this.#last, content, logprobs));
  }

  /** Appends a piece of a recording. */
  audio(piece: Audio, out: CompletionChunk[]): void {
    this.#flow("audio", out);
    out.push(deltaChunk(this.#last, { case: "audio", value: piece }));
  }

  /** Adds a source to the last text; not beyond MAX_CITATIONS. */
  cite(citation: Citation, out: CompletionChunk[]): void {
    if (this.#citations === MAX_CITATIONS) return;
    this.#citations += 1;
    this.#flow("text", out);
    out.push(deltaChunk(this.#last, { case: "citation", value: citation }));
  }

  /**
   * Appends a native event about the answer. An event before the first part is held back until that part starts: nothing may be
   * emitted while a fallback is possible. Left out beyond the budget.
   */
  event(dialect: string, json: string, out: CompletionChunk[]): void {
    if (!this.#budget.takeEvent(json)) return;
    const chunk = toChunk({ case: "nativeEvent", value: toBlock(dialect, json) });
    if (this.begun) out.push(chunk);
    else (this.#early ??= []).push(chunk);
  }

  /** Appends a native event about an unfinished part. Left out beyond the budget. */
  eventOf(
    partIndex: number,
    { dialect, json }: { readonly dialect: string; readonly json: string },
    out: CompletionChunk[],
  ): void {
    if (!this.#budget.takeEvent(json)) return;
    const value = toBlock(dialect, json);
    out.push(deltaChunk({ choiceIndex: this.#index, partIndex }, { case: "nativeEvent", value }));
  }

  /** The text, reasoning, refusal or recording to which pieces are added; undefined without one. */
  get flowingPart(): number | undefined {
    return this.#flowing === undefined ? undefined : this.#parts - 1;
  }

  /** Sets `provider_details_json` of the text or reasoning that the next piece begins. Dropped when the part ends before any piece. */
  describeNext(details: Record<string, string>): void {
    this.#next = details;
  }

  /** Sets a function that is called at the end of the text or reasoning in progress, for its `provider_details_json`. */
  describeAtEnd(read: () => Record<string, string>): void {
    if (this.#flowing !== undefined) this.#atEnd = read;
  }

  /** Finishes the last text or reasoning with a signature; starts an empty one if it is of another kind. */
  sign(kind: "text" | "reasoning", signature: string, out: CompletionChunk[]): void {
    this.#flow(kind, out);
    this.endFlow(out, { signature });
  }

  /** Appends a part that arrived whole. */
  whole(part: Part, out: CompletionChunk[]): void {
    this.endFlow(out);
    this.#end(this.#start(part, out), {}, out);
  }

  /**
   * Appends a native block that arrived whole, in deltas that each fit into a message of a stream. Its events are left out together when
   * they exceed the budget.
   */
  native({ dialect, json, events = [] }: WholeBlock, out: CompletionChunk[]): void {
    this.#budget.takeJson(json);
    this.endFlow(out);
    const partIndex = this.#start(toPart({ case: "native", value: toBlock(dialect, "") }), out);
    if (this.#budget.hasRoomFor(events))
      for (const event of events) this.eventOf(partIndex, { dialect, json: event }, out);
    out.push(...nativeDeltas({ choiceIndex: this.#index, partIndex }, json));
    this.#end(partIndex, {}, out);
  }

  /** Starts a tool call. Returns its part index, for `arguments` and `endCall`. */
  beginCall({ id, name, custom = false, details }: BegunCall, signature: string, out: CompletionChunk[]): number {
    this.endFlow(out);
    const input = custom ? "customInput" : "argumentsJson";
    const value: ToolCall = { $typeName: "parley.v1.ToolCall", id, name, input: { case: input, value: "" } };
    const partIndex = this.#start(toPart({ case: "toolCall", value }, signature, details), out);
    (this.#calls ??= new Map()).set(partIndex, input);
    return partIndex;
  }

  /** Appends arguments or custom input to an unfinished tool call. Ignores empty ones. */
  arguments(partIndex: number, text: string, out: CompletionChunk[]): void {
    const input = this.#calls?.get(partIndex);
    if (text === "" || input === undefined) return;
    if (input === "argumentsJson") this.#budget.takeJson(text);
    out.push(deltaChunk({ choiceIndex: this.#index, partIndex }, { case: input, value: text }));
  }

  /** Finishes a tool call; `ending`: what was not known at its start. */
  endCall(partIndex: number, out: CompletionChunk[], ending: PartEnding = {}): void {
    if (this.#calls?.delete(partIndex) === true) this.#end(partIndex, ending, out);
  }

  /** Finishes the last text, reasoning, refusal or recording, so that the next piece starts a part. */
  endFlow(out: CompletionChunk[], ending: PartEnding = {}): void {
    this.#next = undefined;
    if (this.#flowing === undefined) return;
    this.#flowing = undefined;
    const details = this.#atEnd === undefined ? ending.details : { ...this.#atEnd(), ...ending.details };
    this.#atEnd = undefined;
    this.#end(this.#parts - 1, details === undefined ? ending : { ...ending, details }, out);
  }

  /** Finishes all parts and the choice, see `finishChunk`. */
  finish(ending: Ending, out: CompletionChunk[]): void {
    this.endFlow(out);
    for (const partIndex of this.#calls?.keys() ?? []) this.#end(partIndex, {}, out);
    this.#calls = undefined;
    out.push(finishChunk(this.#index, ending));
  }

  #flow(kind: Flowing, out: CompletionChunk[]): void {
    if (this.#flowing === kind) return;
    const details = this.#next;
    this.endFlow(out);
    this.#start(toPart(emptyKind(kind), "", details), out);
    this.#flowing = kind;
  }

  #start(part: Part, out: CompletionChunk[]): number {
    this.#budget.take();
    const partIndex = this.#parts++;
    out.push(startChunk({ $typeName: "parley.v1.PartStart", choiceIndex: this.#index, partIndex, part }));
    if (this.#early !== undefined) {
      out.push(...this.#early);
      this.#early = undefined;
    }
    return partIndex;
  }

  #end(partIndex: number, { signature = "", details = {} }: PartEnding, out: CompletionChunk[]): void {
    const value: PartFinish = {
      $typeName: "parley.v1.PartFinish",
      choiceIndex: this.#index,
      partIndex,
      signature,
      providerDetailsJson: details,
    };
    out.push(toChunk({ case: "partFinish", value }));
  }
}

/** Most UTF-16 units of a native block in one delta: at most three bytes each, so less than 1 MiB. */
const NATIVE_PIECE_UNITS = 256 * 1024;

/** The deltas of a native block's JSON, each of which fits into a message of a stream. */
export function nativeDeltas(place: PartPlace, json: string): CompletionChunk[] {
  return Array.from(inPieces(json), (value) => deltaChunk(place, { case: "nativeJson", value }));
}

function* inPieces(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    let to = from + NATIVE_PIECE_UNITS;
    // Does not split a surrogate pair.
    if (text.charCodeAt(to) >> 10 === 0b110111) to -= 1;
    yield text.slice(from, to);
    from = to;
  }
}

function emptyKind(kind: Flowing): Part["kind"] {
  if (kind === "audio") return { case: "audio", value: create(AudioSchema) };
  if (kind === "reasoning")
    return { case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: "", redacted: "" } };
  return { case: kind, value: "" };
}

/** Limit of a joined answer, and of a provider's stream, in bytes: twice that of a response that a provider sends as a whole. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
/** Limit of the sources that a choice cites: each may repeat a long address. */
export const MAX_CITATIONS = 1_000;

/** Memory of a chunk and of a token's log probability beside their texts. */
const CHUNK_BYTES = 64;
const LOGPROB_BYTES = 128;

/** Approximate memory that a chunk adds to an answer. Pictures in base64 are not counted: their response has its own limit. */
function sizeOfChunk({ event }: CompletionChunk): number {
  if (event.case === "partStart") {
    const { kind, signature = "", providerDetailsJson = {} } = event.value.part ?? {};
    const bytes = CHUNK_BYTES + signature.length + sizeOfDetails(providerDetailsJson);
    if (kind?.case === "toolCall") return bytes + kind.value.id.length + kind.value.name.length;
    if (kind?.case === "reasoning") return bytes + kind.value.redacted.length;
    if (kind?.case !== "image" || kind.value.source instanceof EncodedSource) return bytes;
    return bytes + (kind.value.source.value?.length ?? 0);
  }
  if (event.case === "partFinish") {
    const { signature, providerDetailsJson } = event.value;
    return CHUNK_BYTES + signature.length + sizeOfDetails(providerDetailsJson);
  }
  if (event.case === "nativeEvent") return CHUNK_BYTES + event.value.json.length;
  if (event.case !== "partDelta") return CHUNK_BYTES;
  const { content, logprobs } = event.value;
  let bytes = CHUNK_BYTES;
  for (const { token, top } of logprobs) bytes += token.length + LOGPROB_BYTES * (1 + top.length);
  if (typeof content.value === "string") return bytes + content.value.length;
  if (content.case === "audio") return bytes + (content.value.source.value?.length ?? 0);
  if (content.case === "nativeEvent") return bytes + content.value.json.length;
  if (content.case !== "citation") return bytes;
  const { source, title, citedText } = content.value;
  const native = source.case === "native" ? source.value.json.length : 0;
  return bytes + citedText.length + title.length + (source.case === "url" ? source.value.length : native);
}

function sizeOfDetails(details: Readonly<Record<string, string>>): number {
  let chars = 0;
  for (const name in details) chars += details[name]!.length;
  return chars;
}

/** Joins the chunks of a stream into the whole answer. Does not change the chunks. */
export class AnswerBuilder {
  #bytes = 0;
  readonly #choices = new Map<number, Choice>();
  /** Pieces of recordings that came in several: `build` joins them once. */
  #pieces: Map<Audio, Uint8Array[]> | undefined;
  #usage: Usage | undefined;

  /**
   * Adds one chunk; `start` and `report` are not part of the answer and ignored. Throws `upstream_protocol` beyond MAX_ANSWER_BYTES: a
   * stream may never end.
   */
  add(chunk: CompletionChunk): void {
    const { event } = chunk;
    this.#bytes += sizeOfChunk(chunk);
    if (this.#bytes > MAX_ANSWER_BYTES)
      throw new Failure("upstream_protocol", "The upstream provider's answer is larger than this gateway reads.");
    switch (event.case) {
      case "partStart": {
        const { choiceIndex, partIndex, part } = event.value;
        if (part !== undefined) this.#choice(choiceIndex).message!.parts[partIndex] = copyPart(part);
        break;
      }
      case "partDelta":
        this.#addDelta(event.value);
        break;
      case "partFinish": {
        const { choiceIndex, partIndex, signature, providerDetailsJson: details } = event.value;
        const part = this.#choice(choiceIndex).message!.parts[partIndex];
        if (part === undefined) break;
        if (signature !== "") part.signature = signature;
        for (const name in details) part.providerDetailsJson[name] = details[name]!;
        break;
      }
      case "choiceFinish": {
        const { choiceIndex, finishReason, nativeFinishReason, stopSequence, providerDetailsJson } = event.value;
        const choice = this.#choice(choiceIndex);
        Object.assign(choice, { finishReason, nativeFinishReason, stopSequence, providerDetailsJson });
        break;
      }
      case "usage":
        this.#usage = event.value;
        break;
      default:
    }
  }

  /** The answer so far: choices by index. */
  build(): Answer {
    for (const [audio, pieces] of this.#pieces ?? []) audio.source = { case: "data", value: Buffer.concat(pieces) };
    this.#pieces = undefined;
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    return { choices, usage: this.#usage };
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = newChoice(index);
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #addDelta({ choiceIndex, partIndex, content, logprobs }: PartDelta): void {
    const part = this.#choice(choiceIndex).message!.parts[partIndex];
    if (part === undefined) return;
    if (content.case === "audio" && part.kind.case === "audio") this.#addAudio(part.kind.value, content.value);
    else addContent(part, content);
    for (const token of logprobs) part.logprobs.push(token);
  }

  #addAudio(audio: Audio, piece: Audio): void {
    if (piece.source.case !== undefined) this.#addSource(audio, piece.source);
    audio.transcript += piece.transcript;
    audio.id ||= piece.id;
    audio.mediaType ||= piece.mediaType;
    if (piece.expireTime !== undefined) audio.expireTime = piece.expireTime;
  }

  /** Appends bytes to those already received. An address replaces them. */
  #addSource(audio: Audio, source: Audio["source"]): void {
    if (audio.source.case !== "data" || source.case !== "data") {
      this.#pieces?.delete(audio);
      audio.source = source;
      return;
    }
    const pieces = this.#pieces?.get(audio);
    if (pieces === undefined) (this.#pieces ??= new Map()).set(audio, [audio.source.value, source.value]);
    else pieces.push(source.value);
  }
}

function newChoice(index: number): Choice {
  return {
    $typeName: "parley.v1.Choice",
    index,
    message: { $typeName: "parley.v1.Message", role: Role.ASSISTANT, parts: [] },
    finishReason: FinishReason.UNSPECIFIED,
    nativeFinishReason: "",
    stopSequence: "",
    providerDetailsJson: {},
  };
}

/** A part to which deltas can be added without changing `part`. */
function copyPart({ kind, citations, signature, providerDetailsJson }: Part): Part {
  const part = toPart(kind, signature, { ...providerDetailsJson });
  if (citations.length > 0) part.citations = [...citations];
  // The other kinds have no deltas, or are replaced as a whole.
  if (kind.case === "toolCall") {
    const { input } = kind.value;
    part.kind = { case: "toolCall", value: { ...kind.value, input: { ...input } } };
  } else if (kind.case === "reasoning") part.kind = { case: "reasoning", value: { ...kind.value } };
  else if (kind.case === "audio") part.kind = { case: "audio", value: { ...kind.value } };
  else if (kind.case === "native") part.kind = { case: "native", value: { ...kind.value } };
  else if (kind.case === "text" || kind.case === "refusal") part.kind = { ...kind };
  return part;
}

function addContent({ kind, citations }: Part, content: PartDelta["content"]): void {
  switch (content.case) {
    case "text":
    case "refusal":
      if (kind.case === content.case) kind.value += content.value;
      break;
    case "reasoning":
      if (kind.case === "reasoning") kind.value.text += content.value;
      break;
    case "argumentsJson":
    case "customInput":
      if (kind.case === "toolCall" && kind.value.input.case === content.case) kind.value.input.value += content.value;
      break;
    case "nativeJson":
      if (kind.case === "native") kind.value.json += content.value;
      break;
    case "citation":
      citations.push(content.value);
      break;
    // `AnswerBuilder` adds recordings; pieces of images are only on the wire, see `inbound/image-pieces.ts`.
    case "audio":
    case "imageData":
    // Native events are only in streams.
    case "nativeEvent":
    case undefined:
      break;
  }
}
