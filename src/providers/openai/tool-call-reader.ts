import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, ToolCallDeltaSchema } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../core/chunks.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { readSignature } from "./answer-content.ts";

/** A call as far as it was read. It is said to the caller as soon as its name is known, and then has an `index`. */
interface Call {
  index: number | undefined;
  readonly id: string;
  readonly custom: boolean;
  name: string;
  signature: string;
  /** Arguments that came before the name. */
  held: string;
  /** Whether the arguments are only blanks so far. */
  blank: boolean;
}

/** One entry of `tool_calls`, by what of it is there. */
interface Piece {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly custom: boolean;
  readonly signature: string;
}

/**
 * Reads the tool calls of one choice. Servers differ in how they say which call a piece belongs to: by index, by ID, by
 * both, or only by order; and some repeat the ID and the name in every piece. Here every call gets its own index, from 0
 * in the order of beginning, and its ID and name once. A call that is never named cannot be made.
 */
export class ToolCallReader {
  readonly #choiceIndex: number;
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  readonly #unnamed = new Set<Call>();
  #last: Call | undefined;
  readonly #said: Call[] = [];

  constructor(choiceIndex: number) {
    this.#choiceIndex = choiceIndex;
  }

  /** Whether any call was said. */
  get called(): boolean {
    return this.#said.length > 0;
  }

  /** Reads the calls of a whole message, each entry a call. */
  readWhole(message: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(message)) this.#add(this.#begin(piece), piece, out);
  }

  /** Reads the pieces of calls in one delta. */
  readDelta(delta: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(delta)) this.#add(this.#find(piece) ?? this.#begin(piece), piece, out);
  }

  /**
   * At the end of the choice: the arguments that a call without any still owes. Throws `upstream_protocol` when a call
   * was never named.
   */
  close(out: CompletionChunk[]): void {
    if (this.#unnamed.size > 0) throw brokenCall();
    for (const call of this.#said) if (call.blank && !call.custom) this.#say(call, { arguments: "{}" }, out);
  }

  #find(piece: Piece): Call | undefined {
    const known = piece.id === "" ? undefined : this.#byId.get(toKey(piece));
    if (known !== undefined) return known;
    if (piece.index === undefined) return piece.id === "" && piece.name === "" ? this.#last : undefined;
    const call = this.#byIndex.get(piece.index);
    // A new ID with a name begins a call: some servers give every call the index 0.
    const another = call !== undefined && piece.id !== "" && piece.name !== "" && call.name !== "";
    return another ? undefined : call;
  }

  #begin(piece: Piece): Call {
    const call: Call = {
      index: undefined,
      id: piece.id || `call_${randomBytes(12).toString("hex")}`,
      custom: piece.custom,
      name: "",
      signature: "",
      held: "",
      blank: true,
    };
    if (piece.index !== undefined) this.#byIndex.set(piece.index, call);
    if (piece.id !== "") this.#byId.set(toKey(piece), call);
    this.#last = call;
    this.#unnamed.add(call);
    return call;
  }

  #add(call: Call, piece: Piece, out: CompletionChunk[]): void {
    call.blank &&= piece.arguments.trim() === "";
    const signature = call.signature === "" ? piece.signature : "";
    call.signature ||= signature;
    if (call.index !== undefined) {
      if (piece.arguments !== "" || signature !== "") this.#say(call, { arguments: piece.arguments, signature }, out);
      return;
    }
    call.held += piece.arguments;
    call.name ||= piece.name;
    if (call.name === "") return;
    this.#unnamed.delete(call);
    call.index = this.#said.push(call) - 1;
    const { id, name, custom, held } = call;
    this.#say(call, { id, name, custom, arguments: held, signature: call.signature }, out);
  }

  #say({ index }: Call, piece: Partial<Piece>, out: CompletionChunk[]): void {
    const value = create(ToolCallDeltaSchema, { ...piece, index: index! });
    out.push(deltaChunk(this.#choiceIndex, { case: "toolCall", value }));
  }
}

const toKey = ({ index, id }: Piece): string => `${index ?? ""}:${id}`;

function readPieces(message: Json): Piece[] {
  const pieces = array(message.tool_calls).map((entry) => readPiece(object(entry)));
  // The form before `tool_calls`: one call, without an ID. Servers that send both say the same twice.
  const legacy = object(message.function_call);
  if (pieces.length === 0 && Object.keys(legacy).length > 0) pieces.push(readPiece({ index: 0, function: legacy }));
  return pieces.filter(({ id, name, arguments: text, signature }) => `${id}${name}${text}${signature}` !== "");
}

function readPiece(entry: Json): Piece {
  const custom = entry.type === "custom";
  const body = object(custom ? entry.custom : entry.function);
  return {
    index: count(entry.index),
    id: string(entry.id),
    name: string(body.name),
    arguments: custom ? string(body.input) : readArguments(body.arguments),
    custom,
    signature: readSignature(entry),
  };
}

/** Arguments are JSON text; some servers send the object itself. */
function readArguments(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : string(value);
}
