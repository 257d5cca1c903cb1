import { create } from "@bufbuild/protobuf";
import {
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
  type TokenLogprob,
  type ToolCall,
} from "../../gen/parley/v1/message_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { PartBudget } from "./part-budget.ts";

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

/** Limit of the sources that a choice cites: each may repeat a long address. */
export const MAX_CITATIONS = 1_000;

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
