import { type Message, type Part, Role, type ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { toPart } from "../../core/chunks.ts";
import { MAX_MESSAGES } from "../../core/validate.ts";
import type { GeminiContent, GeminiPart, SystemInstruction } from "./content-schema.ts";
import type { FunctionNames } from "./function-names.ts";
import { toContentPart, toToolResult } from "./parts.ts";
import { readSignature } from "./signature.ts";

/** A conversation, and the places of its parts in the caller's request. */
export interface Conversation {
  readonly messages: Message[];
  readonly places: readonly MessagePlaces[];
}

/** The places of a message's parts. */
export interface MessagePlaces {
  /** Index of the message's content; -1: the system instruction. */
  readonly content: number;
  /** Of each part, see `toPlace`. */
  readonly parts: number[];
}

/** Larger than the number of parts that a content may have. */
const PARTS = 2 ** 16;

/** A content and a part of it as one number: a long conversation has many. */
function toPlace(content: number, part: number): number {
  return content * PARTS + part;
}

export function fromPlace(place: number): { readonly content: number; readonly part: number } {
  return { content: Math.floor(place / PARTS), part: place % PARTS };
}

/**
 * Converts contents to messages. Consecutive contents of the model become one message, because clients keep each chunk of a stream as a
 * separate content. The responses in a content become a message before the rest of it.
 */
export function toMessages(
  { contents, systemInstruction }: Pick<Given, "contents" | "systemInstruction">,
  names: FunctionNames,
): Conversation {
  const reader = new ContentReader(names);
  if (systemInstruction != null) reader.addSystem(systemInstruction);
  for (let at = 0; at < contents.length && reader.messages.length <= MAX_MESSAGES; at++) reader.add(contents[at]!, at);
  return reader;
}

interface Given {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: SystemInstruction | null | undefined;
}

const SYSTEM = -1;

/** Limit of pieces of reasoning that are read from the signatures of a request. */
const MAX_REASONING = 10_000;

class ContentReader implements Conversation {
  readonly messages: Message[] = [];
  readonly places: MessagePlaces[] = [];
  readonly #names: FunctionNames;
  /** Number of calls in the whole request. */
  #calls = 0;
  /** Pieces of reasoning that may still be read. */
  #reasoning = MAX_REASONING;
  /** Calls of the model's last turn without a response: their IDs, and their IDs by name, in order. */
  #open = new Set<string>();
  #openByName = new Map<string, Set<string>>();

  constructor(names: FunctionNames) {
    this.#names = names;
  }

  addSystem({ parts }: SystemInstruction): void {
    const own = this.#begin(Role.SYSTEM, SYSTEM);
    parts?.forEach((given, index) => {
      const part = toContentPart(given, `systemInstruction.parts[${index}]`, "");
      if (part !== undefined) own.add(part, index);
    });
    this.#dropEmpty();
  }

  add({ role, parts }: GeminiContent, at: number): void {
    if (parts == null) return;
    if (role === "model") this.#addModel(parts, at);
    else this.#addUser(parts, at);
  }

  #addModel(parts: readonly GeminiPart[], at: number): void {
    const isSame = this.messages.at(-1)?.role === Role.ASSISTANT;
    if (!isSame) {
      this.#open = new Set();
      this.#openByName = new Map();
    }
    const turn = isSame ? this.#last : this.#begin(Role.ASSISTANT, at);
    parts.forEach((given, index) => this.#addModelPart(turn, given, { at, index }));
    if (!isSame) this.#dropEmpty();
  }

  #addModelPart(turn: Turn, given: GeminiPart, { at, index }: { readonly at: number; readonly index: number }): void {
    if (given.thought === true) {
      const text = given.text ?? "";
      const value = { $typeName: "parley.v1.Reasoning", text, redacted: "" } as const;
      // Drafts of pictures are thoughts too, and are not sent back.
      if (text !== "") turn.addThought(toPart({ case: "reasoning", value }), toPlace(at, index));
      return;
    }
    const { signature, reasoning } = readSignature(this.#reasoning > 0 ? given.thoughtSignature : undefined);
    this.#reasoning -= reasoning.length;
    if (reasoning.length > 0) turn.replaceThoughts(reasoning, toPlace(at, index));
    const part =
      given.functionCall == null
        ? toContentPart(given, `contents[${at}].parts[${index}]`, signature)
        : toPart({ case: "toolCall", value: this.#toCall(given.functionCall) }, signature);
    if (part !== undefined) turn.join(part, toPlace(at, index));
  }

  #toCall({ id, name, args }: NonNullable<GeminiPart["functionCall"]>): ToolCall {
    const callId = id || `call_${this.#calls}`;
    this.#calls += 1;
    this.#open.add(callId);
    const ofName = this.#openByName.get(name);
    if (ofName === undefined) this.#openByName.set(name, new Set([callId]));
    else ofName.add(callId);
    return {
      $typeName: "parley.v1.ToolCall",
      id: callId,
      name: this.#names.toContract(name),
      input: { case: "argumentsJson", value: JSON.stringify(args ?? {}) },
    };
  }

  #addUser(parts: readonly GeminiPart[], at: number): void {
    const results = this.#begin(Role.TOOL, at);
    parts.forEach(({ functionResponse }, index) => {
      if (functionResponse == null) return;
      const path = `contents[${at}].parts[${index}].functionResponse`;
      const value = toToolResult(functionResponse, this.#callOf(functionResponse), path);
      results.add(toPart({ case: "toolResult", value }), toPlace(at, index));
    });
    this.#dropEmpty();
    const rest = this.#begin(Role.USER, at);
    parts.forEach((given, index) => {
      if (given.functionResponse != null) return;
      const part = toContentPart(given, `contents[${at}].parts[${index}]`, "");
      if (part !== undefined) rest.add(part, toPlace(at, index));
    });
    this.#dropEmpty();
  }

  /** The ID of the call that a response belongs to: by its ID, else the first open one of the name. */
  #callOf({ id, name }: NonNullable<GeminiPart["functionResponse"]>): string {
    if (id && this.#open.delete(id)) return id;
    const ofName = this.#openByName.get(name ?? "") ?? [];
    for (const callId of ofName) {
      (ofName as Set<string>).delete(callId);
      if (this.#open.delete(callId)) return callId;
    }
    // Without a matching call, core refuses the request.
    return id || name || "";
  }

  get #last(): Turn {
    return new Turn(this.messages.at(-1)!.parts, this.places.at(-1)!.parts);
  }

  #begin(role: Role, content: number): Turn {
    this.messages.push({ $typeName: "parley.v1.Message", role, parts: [] });
    this.places.push({ content, parts: [] });
    return this.#last;
  }

  /** Removes an empty turn of the model, which clients keep after a failed call. */
  #dropEmpty(): void {
    if (this.messages.at(-1)?.parts.length !== 0) return;
    this.messages.pop();
    this.places.pop();
  }
}

/** The parts of a message, and their places. */
class Turn {
  readonly #parts: Part[];
  readonly #places: number[];

  constructor(parts: Part[], places: number[]) {
    this.#parts = parts;
    this.#places = places;
  }

  add(part: Part, place: number): void {
    this.#parts.push(part);
    this.#places.push(place);
  }

  /** Adds a part of the model. Text is appended to a text before it, unless a signature has ended that. */
  join(part: Part, place: number): void {
    const last = this.#parts.at(-1);
    if (part.kind.case !== "text" || last?.kind.case !== "text" || last.signature !== "") return this.add(part, place);
    last.kind.value += part.kind.value;
    last.signature = part.signature;
  }

  addThought(part: Part, place: number): void {
    const last = this.#parts.at(-1);
    if (last?.kind.case !== "reasoning" || last.signature !== "" || part.kind.case !== "reasoning")
      return this.add(part, place);
    last.kind.value.text += part.kind.value.text;
  }

  /** Replaces the shown thoughts by the reasoning with its signatures. */
  replaceThoughts(reasoning: readonly Part[], place: number): void {
    for (let last = this.#parts.at(-1); last !== undefined && isShownThought(last); last = this.#parts.at(-1)) {
      this.#parts.pop();
      this.#places.pop();
    }
    for (const part of reasoning) this.add(part, place);
  }
}

function isShownThought({ kind, signature }: Part): boolean {
  return kind.case === "reasoning" && signature === "" && kind.value.redacted === "";
}
