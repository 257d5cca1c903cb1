import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { CompletionChunk, PartialImage } from "../../../gen/parley/v1/completion_pb.js";
import { ImageSchema } from "../../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, toChunk, toPart, type WrittenText } from "../../core/chunks.ts";
import { type PartBudget, tooManyParts } from "../../core/part-budget.ts";
import { MAX_PARTS } from "../../core/validate.ts";
import { toEventJson } from "../wire/native-words.ts";
import { furtherOf } from "../wire/further-fields.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { readTokens } from "../wire/openai-content.ts";
import type { Redact } from "../wire/redaction.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { toCitation } from "./citations.ts";
import { DIALECT } from "./parts.ts";
import { writeState } from "./state.ts";

/** A text within an item: the list that it is in, and its index there. */
export interface Place {
  readonly item: number;
  readonly list: "content" | "summary";
  readonly index: number;
}

/** A piece of a text, with the log probabilities of its tokens if there are any. */
interface Piece extends WrittenText {
  readonly logprobs?: unknown;
}

/** Fields of items that are read. */
const OF_ITEMS: ReadonlySet<string> = new Set([
  "type",
  "role",
  "status",
  "content",
  "call_id",
  "name",
  "namespace",
  "arguments",
  "input",
  "result",
  "output_format",
]);

const OF_TEXT: ReadonlySet<string> = new Set(["type", "text", "annotations", "logprobs"]);
const OF_REASONING: ReadonlySet<string> = new Set(["type", "status", "summary", "content"]);

/** Items that become parts of the contract. */
const OF_CONTRACT: ReadonlySet<string> = new Set([
  "message",
  "reasoning",
  "function_call",
  "custom_tool_call",
  "image_generation_call",
]);

/** Fields of an event that name its item, response or position. */
const PLACES: ReadonlySet<string> = new Set(["item_id", "output_index", "sequence_number", "response_id", "event_id"]);

/** Limit of previews (partial pictures) of one answer. A picture has at most three. */
const MAX_PARTIAL_IMAGES = 64;

/** Limit of the events that wait for the end of their items, in UTF-16 units of their JSON. */
const MAX_HELD_CHARS = 1024 * 1024;

/** An item that has not ended. */
interface OpenItem {
  /** Its type, if its start event has one. */
  type: string;
  /** Events about a native item, as JSON. */
  readonly events: string[];
  /** UTF-16 units of each of its texts that were emitted, by place. */
  readonly sent: Map<string, number>;
  /** Annotations of its texts that were read, by place. */
  readonly cited: Map<string, number>;
  /** Number of previews that were received. */
  partialImages: number;
  /** The begun call of the item. */
  call: { readonly partIndex: number; readonly isCustom: boolean } | undefined;
  /** Arguments of a call that wait for its name. */
  held: string;
  /** UTF-16 units of a call's arguments so far. */
  inputLength: number;
  /** Whether they are only blanks. */
  isBlank: boolean;
}

/**
 * Maps the items of one answer to parts, for whole answers and streams alike. The end of an item repeats its whole content; content that
 * came in pieces before is not emitted again. Items of other types become native blocks.
 */
export class AnswerContent {
  readonly #budget: PartBudget;
  readonly #writer: ChoiceWriter;
  readonly #open = new Map<number, OpenItem>();
  /** Indexes of items that have ended. */
  readonly #ended = new Set<number>();
  /** Indexes of items by their IDs. */
  readonly #places = new Map<string, number>();
  /** IDs of reasoning that ended without a state. */
  readonly #unsigned = new Set<string>();
  #items = 0;
  #texts = 0;
  /** The text to which pieces are added. */
  #flow = "";
  #calls = 0;
  #webSearches = 0;
  #fileSearches = 0;
  /** IDs of containers in which code ran. */
  readonly #containers = new Set<string>();
  #drew = false;
  #partialImages = 0;
  #heldChars = 0;
  readonly #redact: Redact;

  /** `budget`: that of the answer; `redact` removes the provider's credentials from everything but content. */
  constructor(budget: PartBudget, redact: Redact) {
    this.#budget = budget;
    this.#writer = new ChoiceWriter(0, budget);
    this.#redact = redact;
  }

  /** Whether any content was emitted. */
  get begun(): boolean {
    return this.#writer.begun || this.#partialImages > 0;
  }

  /** Whether the answer calls tools of the caller. */
  get called(): boolean {
    return this.#calls > 0;
  }

  /** Number of web searches of the provider. */
  get webSearches(): number {
    return this.#webSearches;
  }

  /** Number of the provider's searches of stored files. */
  get fileSearches(): number {
    return this.#fileSearches;
  }

  /** Number of containers in which the provider ran code. */
  get containers(): number {
    return this.#containers.size;
  }

  /** Whether the provider made pictures. */
  get drew(): boolean {
    return this.#drew;
  }

  /** Begins an item; `index` is its place in the answer. Throws for more items than a message may have parts. */
  begin(index: number, item: Json, out: CompletionChunk[]): void {
    const open = this.#find(index);
    if (open === undefined) return;
    open.type = string(item["type"]);
    this.#place(index, item);
    this.#beginCall(open, item, out);
  }

  /** Adds an event of a type that is not read: about an item, or about the answer. */
  addEvent(event: Json, out: CompletionChunk[]): void {
    const json = toEventJson(event, { places: PLACES, answer: "response", redact: this.#redact });
    const { output_index: index } = event;
    if (json === undefined) return;
    if (index === undefined) return this.#writer.event(DIALECT, json, out);
    const open = this.#open.get(Number(index));
    if (open === undefined) return;
    if (!OF_CONTRACT.has(open.type)) return this.#hold(open, json);
    const partIndex = open.call?.partIndex ?? (open.sent.size > 0 ? this.#writer.flowingPart : undefined);
    if (partIndex !== undefined) this.#writer.eventOf(partIndex, { dialect: DIALECT, json }, out);
  }

  /** Holds an event until its native item has ended. */
  #hold(open: OpenItem, json: string): void {
    this.#heldChars += json.length;
    if (this.#heldChars <= MAX_HELD_CHARS) open.events.push(json);
    else open.events.length = 0;
  }

  /** Adds a piece of a text. */
  add(place: Place, piece: Piece, out: CompletionChunk[]): void {
    const open = this.#find(place.item);
    if (open !== undefined) this.#say(open, place, { piece, out });
  }

  /** Adds a piece of a call's arguments or input. */
  addInput(index: number, text: string, out: CompletionChunk[]): void {
    const open = this.#find(index);
    if (open !== undefined) this.#addInput(open, text, out);
  }

  /** Adds a source of the text in progress. Sources that come before their text are read when the text ends. */
  cite(place: Place, annotation: Json, out: CompletionChunk[]): void {
    const open = this.#open.get(place.item);
    if (open === undefined || !this.#isFlowing(place)) return;
    const key = keyOf(place);
    open.cited.set(key, (open.cited.get(key) ?? 0) + 1);
    const citation = toCitation(annotation);
    if (citation !== undefined) this.#writer.cite(citation, out);
  }

  /** Ends a text of a message. `content` has the whole text. */
  endText(place: Place, content: Json, out: CompletionChunk[]): void {
    const open = this.#find(place.item);
    if (open === undefined) return;
    const { type, text, refusal, annotations, logprobs } = content;
    if (type === "refusal")
      return this.#sayRest(open, place, { piece: { case: "refusal", value: string(refusal) }, out });
    if (type !== "output_text") return;
    this.#sayRest(open, place, { piece: { case: "text", value: string(text), logprobs }, out });
    for (const annotation of array(annotations).slice(open.cited.get(keyOf(place)) ?? 0))
      this.cite(place, object(annotation), out);
    if (this.#isFlowing(place))
      this.#writer.describeAtEnd(() =>
        furtherOf(content, {
          prefix: `${DIALECT}.content.`,
          known: OF_TEXT,
          budget: this.#budget,
          redact: this.#redact,
        }),
      );
  }

  /** Ends an item. `item` is the whole item. Ignores an item that has ended. Throws `upstream_protocol` for a call without a name. */
  end(index: number, item: Json, out: CompletionChunk[]): void {
    const open = this.#find(index);
    if (open === undefined) return;
    const type = string(item["type"]);
    switch (type) {
      case "message":
        this.#endMessage(index, item, out);
        break;
      case "reasoning":
        this.#endReasoning(open, { index, item }, out);
        break;
      case "function_call":
      case "custom_tool_call":
        this.#endCall(open, item, out);
        break;
      case "image_generation_call":
        this.#drew = true;
        this.#addImage(item, out);
        break;
      case "web_search_call":
        // Only searches have a fee; opening a page and searching in it cost nothing.
        if ((string(object(item["action"])["type"]) || "search") === "search") this.#webSearches += 1;
        this.#writer.native({ dialect: DIALECT, json: JSON.stringify(item), events: open.events }, out);
        break;
      case "file_search_call":
        this.#fileSearches += 1;
        this.#writer.native({ dialect: DIALECT, json: JSON.stringify(item), events: open.events }, out);
        break;
      case "code_interpreter_call":
        this.#containers.add(string(item["container_id"]));
        this.#writer.native({ dialect: DIALECT, json: JSON.stringify(item), events: open.events }, out);
        break;
      default:
        if (type !== "")
          this.#writer.native({ dialect: DIALECT, json: JSON.stringify(item), events: open.events }, out);
    }
    this.#open.delete(index);
    this.#ended.add(index);
    this.#place(index, item);
  }

  /**
   * Ends the unfinished items by the response's list of all items. Servers may leave items out of the list, which shifts the others.
   * Some servers encrypt reasoning only in this list: then its state is emitted last, with the position to which it belongs.
   */
  endRest(items: readonly unknown[], out: CompletionChunk[]): void {
    const places = new Map(this.#places);
    const late = new Set(this.#unsigned);
    const all = items.map(object);
    const placeOf = ({ id }: Json, index: number): number => places.get(string(id)) ?? index;
    all.forEach((item, index) => this.end(placeOf(item, index), item, out));
    all.forEach((item, index) => {
      const state = late.has(string(item["id"])) ? toReasoning(item) : undefined;
      if (state === undefined) return;
      this.#writer.endFlow(out);
      this.#writer.sign("reasoning", writeState({ reasoning: state, at: placeOf(item, index) }), out);
    });
  }

  /** Ends all items and the answer. Throws `upstream_protocol` for a call without a name. */
  finish(ending: Parameters<ChoiceWriter["finish"]>[0], out: CompletionChunk[]): void {
    for (const open of this.#open.values())
      if (open.call !== undefined || open.inputLength > 0) this.#endCall(open, {}, out);
    this.#writer.finish(ending, out);
  }

  #place(index: number, { id }: Json): void {
    if (string(id) !== "") this.#places.set(string(id), index);
  }

  /** The open item at an index, which is begun if it is new; undefined for an item that has ended. */
  #find(index: number): OpenItem | undefined {
    if (this.#ended.has(index)) return undefined;
    const known = this.#open.get(index);
    if (known !== undefined) return known;
    if (++this.#items > MAX_PARTS) throw tooManyParts();
    const open: OpenItem = {
      type: "",
      events: [],
      sent: new Map(),
      cited: new Map(),
      partialImages: 0,
      call: undefined,
      held: "",
      inputLength: 0,
      isBlank: true,
    };
    this.#open.set(index, open);
    return open;
  }

  /** Adds to the text at a place. The texts of a piece of reasoning are one part, with a blank line between them. */
  #say(
    open: OpenItem,
    place: Place,
    { piece: { logprobs, ...piece }, out }: { readonly piece: Piece; readonly out: CompletionChunk[] },
  ): void {
    const tokens = readTokens(logprobs);
    if (piece.value === "" && tokens.length === 0) return;
    const isReasoning = piece.case === "reasoning";
    this.#moveTo(isReasoning ? reasoningOf(place.item) : keyOf(place), out);
    const key = keyOf(place);
    const sent = open.sent.get(key);
    if (sent === undefined) {
      if (++this.#texts > MAX_PARTS) throw tooManyParts();
      if (isReasoning && open.sent.size > 0) this.#writer.text({ case: "reasoning", value: "\n\n" }, out);
    }
    open.sent.set(key, (sent ?? 0) + piece.value.length);
    this.#writer.text(piece, out, tokens.length > 0 ? tokens : undefined);
  }

  /** Adds the rest of a whole text, beyond the pieces that were emitted before. */
  #sayRest(
    open: OpenItem,
    place: Place,
    { piece, out }: { readonly piece: Piece; readonly out: CompletionChunk[] },
  ): void {
    const sent = open.sent.get(keyOf(place)) ?? 0;
    if (sent === 0) this.#say(open, place, { piece, out });
    else this.#say(open, place, { piece: { case: piece.case, value: piece.value.slice(sent) }, out });
  }

  /** Ends the text in progress if `flow` is another one. */
  #moveTo(flow: string, out: CompletionChunk[]): void {
    if (this.#flow !== flow) this.#writer.endFlow(out);
    this.#flow = flow;
  }

  #isFlowing(place: Place): boolean {
    return this.#writer.flowing === "text" && this.#flow === keyOf(place);
  }

  /** Ends a message. Its phase, if it has one, is kept with its last text. */
  #endMessage(item: number, message: Json, out: CompletionChunk[]): void {
    const { content, phase } = message;
    const contents = array(content);
    contents.forEach((each, index) => this.endText({ item, list: "content", index }, object(each), out));
    const last: Place = { item, list: "content", index: contents.length - 1 };
    if (!this.#isFlowing(last)) return this.#writer.endFlow(out);
    const signature = string(phase) === "" ? "" : writeState({ phase: string(phase) });
    this.#writer.endFlow(out, { signature, details: this.#further(message, "message") });
  }

  /** Fields of an item that the contract does not have. `place`: for the fields of a message, which are kept with its last text. */
  #further(item: Json, place?: "message"): Record<string, string> {
    const prefix = place === undefined ? `${DIALECT}.` : `${DIALECT}.${place}.`;
    return furtherOf(item, { prefix, known: OF_ITEMS, budget: this.#budget, redact: this.#redact });
  }

  /** Ends reasoning. Its text is the provider's summary, or the reasoning itself for servers without summaries. */
  #endReasoning(
    open: OpenItem,
    { index: item, item: given }: { index: number; item: Json },
    out: CompletionChunk[],
  ): void {
    const { id, summary, content } = given;
    const hasContent = [...open.sent.keys()].some((key) => key.startsWith("content"));
    const isSummary = !hasContent && (open.sent.size > 0 || array(summary).length > 0);
    const list = isSummary ? "summary" : "content";
    array(isSummary ? summary : content).forEach((each, index) => {
      const piece = { case: "reasoning", value: string(object(each)["text"]) } as const;
      this.#sayRest(open, { item, list, index }, { piece, out });
    });
    this.#moveTo(reasoningOf(item), out);
    const further = furtherOf(given, {
      prefix: `${DIALECT}.`,
      known: OF_REASONING,
      budget: this.#budget,
      redact: this.#redact,
    });
    if (this.#writer.flowing === "reasoning") this.#writer.describeAtEnd(() => further);
    else this.#writer.describeNext(further);
    const state = toReasoning(given);
    if (state !== undefined) {
      this.#writer.sign("reasoning", writeState({ reasoning: state }), out);
    } else if (string(id) !== "") this.#unsigned.add(string(id));
    this.#writer.endFlow(out);
  }

  /** Begins a call if the item is a call whose name is known. */
  #beginCall(open: OpenItem, { type, name, call_id: callId }: Json, out: CompletionChunk[]): void {
    if (open.call !== undefined || string(name) === "") return;
    if (type !== "function_call" && type !== "custom_tool_call") return;
    const isCustom = type === "custom_tool_call";
    const id = string(callId) || `call_${randomUUID().replaceAll("-", "")}`;
    open.call = { partIndex: this.#writer.beginCall({ id, name: string(name), custom: isCustom }, "", out), isCustom };
    this.#calls += 1;
    this.#writer.arguments(open.call.partIndex, open.held, out);
    open.held = "";
  }

  #addInput(open: OpenItem, text: string, out: CompletionChunk[]): void {
    open.inputLength += text.length;
    open.isBlank &&= text.trim() === "";
    if (open.call === undefined) open.held += text;
    else this.#writer.arguments(open.call.partIndex, text, out);
  }

  /** Ends a call. `item`: the whole call, or an empty object when the provider did not repeat it. */
  #endCall(open: OpenItem, item: Json, out: CompletionChunk[]): void {
    this.#beginCall(open, item, out);
    if (open.call === undefined) throw brokenCall();
    const { partIndex, isCustom } = open.call;
    const whole = isCustom ? string(item["input"]) : readArguments(item["arguments"]);
    this.#addInput(open, whole.slice(open.inputLength), out);
    if (open.isBlank && !isCustom) this.#writer.arguments(partIndex, "{}", out);
    this.#writer.endCall(partIndex, out, { details: this.#further(item) });
  }

  /** Adds a preview of a picture. Without an index it follows the item's earlier previews. Ignores previews beyond MAX_PARTIAL_IMAGES. */
  addPartialImage(event: Json, out: CompletionChunk[]): void {
    const data = Buffer.from(string(event["partial_image_b64"]), "base64");
    if (data.length === 0 || ++this.#partialImages > MAX_PARTIAL_IMAGES) return;
    const open = this.#find(count(event["output_index"]) ?? 0);
    if (open === undefined) return;
    const value: PartialImage = {
      $typeName: "parley.v1.PartialImage",
      choiceIndex: 0,
      index: count(event["partial_image_index"]) ?? open.partialImages,
      mediaType: mediaTypeOf(event["output_format"]),
      data,
      hasMore: false,
    };
    open.partialImages += 1;
    out.push(toChunk({ case: "partialImage", value }));
  }

  #addImage(item: Json, out: CompletionChunk[]): void {
    const { id, result, output_format: format } = item;
    const value = Buffer.from(string(result), "base64");
    if (value.length === 0) return;
    const image = create(ImageSchema, { mediaType: mediaTypeOf(format) });
    image.source = { case: "data", value };
    const state = string(id) === "" ? "" : writeState({ image: string(id) });
    this.#writer.whole(toPart({ case: "image", value: image }, state, this.#further(item)), out);
  }
}

/** Media type of an `output_format`. */
const mediaTypeOf = (format: unknown): string =>
  `image/${/^[a-z]{1,16}$/.test(string(format)) ? string(format) : "png"}`;

const keyOf = ({ item, list, index }: Place): string => `${list} ${index} of ${item}`;
const reasoningOf = (item: number): string => `reasoning of ${item}`;

/** The state of encrypted reasoning; undefined for reasoning that is not encrypted. */
function toReasoning({ id, summary, content, encrypted_content: encrypted }: Json) {
  if (string(encrypted) === "") return undefined;
  return {
    ...(string(id) !== "" && { id: string(id) }),
    summary: array(summary),
    ...(Array.isArray(content) && { content }),
    encrypted_content: string(encrypted),
  };
}

/** Arguments are JSON text; some servers send the object itself. */
function readArguments(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : string(value);
}
