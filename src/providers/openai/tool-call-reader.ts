import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, ToolCallDeltaSchema } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../core/chunks.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { readSignature } from "./answer-content.ts";

/** State of a call. It is emitted as soon as its name is known, and then has an `index`. */
interface Call {
  index: number | undefined;
  readonly id: string;
  readonly custom: boolean;
  name: string;
  signature: string;
  /** Arguments received before the name. */
  held: string;
  /** Whether the arguments are only blanks so far. */
  blank: boolean;
}

/** Fields of one entry of `tool_calls`. */
interface Piece {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly custom: boolean;
  readonly signature: string;
}

/**
 * Reads the tool calls of one choice. Servers assign pieces to calls by index, by ID, by both, or by order only; some repeat
 * ID and name in every piece. Emitted calls are numbered from 0 in order, with ID and name once. A call needs a name.
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

  /** Whether any call was emitted. */
  get called(): boolean {
    return this.#said.length > 0;
  }

  /** Reads the calls of a whole message. */
  readWhole(message: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(message)) this.#add(this.#begin(piece), piece, out);
  }

  /** Reads the pieces of calls in one delta. */
  readDelta(delta: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(delta)) this.#add(this.#find(piece) ?? this.#begin(piece), piece, out);
  }

  /**
   * Ends the choice: emits `{}` for calls without arguments. Throws `upstream_protocol` for a call without a name.
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
    // A new ID with a name starts a call: some servers use index 0 for all calls.
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
  // The legacy `function_call`: one call without an ID. Servers that send both repeat the same call.
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
