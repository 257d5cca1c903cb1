import { randomBytes } from "node:crypto";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { ChoiceWriter } from "../../core/chunks.ts";
import type { PartBudget } from "../../core/part-budget.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import type { Redact } from "../wire/redaction.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { readSignature } from "./answer-content.ts";

/** Fields of a call, and of its function or custom tool, that are read, or have a counterpart in the contract. */
const OF_CALL: ReadonlySet<string> = new Set(["index", "id", "type", "function", "custom", "extra_content"]);
const OF_FUNCTION: ReadonlySet<string> = new Set(["name", "arguments"]);
const OF_CUSTOM: ReadonlySet<string> = new Set(["name", "input"]);

/** State of a call. It is emitted as soon as its name is known, and then has a `partIndex`. */
interface Call {
  partIndex: number | undefined;
  readonly id: string;
  readonly custom: boolean;
  name: string;
  signature: string;
  /** Whether the signature arrived after the call's beginning. */
  isSignedLate: boolean;
  /** Arguments received before the name. */
  held: string;
  /** Whether the arguments are only blanks so far. */
  blank: boolean;
  /** Fields that the contract does not have: of the call, and of its function or custom tool. Undefined without any. */
  further: readonly FurtherFields[] | undefined;
}

/** Fields of one entry of `tool_calls`. */
interface Piece {
  readonly index: number | undefined;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly custom: boolean;
  readonly signature: string;
  /** The entry, and its function or custom tool. */
  readonly entry: Json;
  readonly body: Json;
}

/**
 * Reads the tool calls of one choice. Servers assign pieces to calls by index, by ID, by both, or by order only; some repeat
 * ID and name in every piece. Each call becomes one part. A call needs a name.
 */
export class ToolCallReader {
  readonly #writer: ChoiceWriter;
  readonly #budget: PartBudget;
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  readonly #unnamed = new Set<Call>();
  #last: Call | undefined;
  readonly #said: Call[] = [];

  /** `budget`: limits the answer's parts. A call without a name is counted when it begins, and again with its part. */
  constructor(writer: ChoiceWriter, budget: PartBudget) {
    this.#writer = writer;
    this.#budget = budget;
  }

  /** Whether any call was emitted. */
  get called(): boolean {
    return this.#said.length > 0;
  }

  /** Reads the calls of a whole message. */
  readWhole(message: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(message)) if (!isEmpty(piece)) this.#add(this.#begin(piece), piece, out);
  }

  /** Reads the pieces of calls in one delta. */
  readDelta(delta: Json, out: CompletionChunk[]): void {
    for (const piece of readPieces(delta)) {
      const known = this.#find(piece);
      if (known !== undefined) this.#add(known, piece, out);
      else if (!isEmpty(piece)) this.#add(this.#begin(piece), piece, out);
    }
  }

  /**
   * Ends the calls: emits `{}` for calls without arguments. `redact` removes the provider's credentials from everything but content.
   * Throws `upstream_protocol` for a call without a name.
   */
  close(redact: Redact, out: CompletionChunk[]): void {
    if (this.#unnamed.size > 0) throw brokenCall();
    for (const { partIndex, blank, custom, signature, isSignedLate, further = [] } of this.#said) {
      if (blank && !custom) this.#writer.arguments(partIndex!, "{}", out);
      const details = Object.assign({}, ...further.map((fields) => fields.read(redact))) as Record<string, string>;
      this.#writer.endCall(partIndex!, out, { details, ...(isSignedLate && { signature }) });
    }
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
    if (piece.name === "") this.#budget.take();
    const call: Call = {
      partIndex: undefined,
      id: piece.id || `call_${randomBytes(12).toString("hex")}`,
      custom: piece.custom,
      name: "",
      signature: "",
      isSignedLate: false,
      held: "",
      blank: true,
      further: undefined,
    };
    if (piece.index !== undefined) this.#byIndex.set(piece.index, call);
    if (piece.id !== "") this.#byId.set(toKey(piece), call);
    this.#last = call;
    this.#unnamed.add(call);
    return call;
  }

  #add(call: Call, piece: Piece, out: CompletionChunk[]): void {
    this.#addFurther(call, piece);
    call.blank &&= piece.arguments.trim() === "";
    if (call.signature === "" && piece.signature !== "") {
      call.signature = piece.signature;
      call.isSignedLate = call.partIndex !== undefined;
    }
    if (call.partIndex !== undefined) return this.#writer.arguments(call.partIndex, piece.arguments, out);
    call.held += piece.arguments;
    call.name ||= piece.name;
    if (call.name === "") return;
    this.#unnamed.delete(call);
    this.#said.push(call);
    const { id, name, custom, held, signature } = call;
    call.partIndex = this.#writer.beginCall({ id, name, custom }, signature, out);
    this.#writer.arguments(call.partIndex, held, out);
  }

  /** Notes the fields that the contract does not have. A streamed call has the fields of all its pieces. */
  #addFurther(call: Call, { entry, body }: Piece): void {
    const ofBody = call.custom ? OF_CUSTOM : OF_FUNCTION;
    if (!hasOthers(entry, OF_CALL) && !hasOthers(body, ofBody)) return;
    call.further ??= [
      new FurtherFields("openai.", OF_CALL, this.#budget),
      new FurtherFields(call.custom ? "openai.custom." : "openai.function.", ofBody, this.#budget),
    ];
    call.further[0]!.addPiece(entry);
    call.further[1]!.addPiece(body);
  }
}

const toKey = ({ index, id }: Piece): string => `${index ?? ""}:${id}`;

function readPieces(message: Json): Piece[] {
  const pieces = array(message.tool_calls).map((entry) => readPiece(object(entry)));
  // The legacy `function_call`: one call without an ID. Servers that send both repeat the same call.
  const legacy = object(message.function_call);
  if (pieces.length === 0 && Object.keys(legacy).length > 0) pieces.push(readPiece({ index: 0, function: legacy }));
  return pieces;
}

/** Whether a piece has no field of the contract. Some servers send such pieces; they begin no call. */
function isEmpty({ id, name, arguments: text, signature }: Piece): boolean {
  return `${id}${name}${text}${signature}` === "";
}

function hasOthers(of: Json, known: ReadonlySet<string>): boolean {
  for (const key in of) if (!known.has(key)) return true;
  return false;
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
    entry,
    body,
  };
}

/** Arguments are JSON text; some servers send the object itself. */
function readArguments(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : string(value);
}
