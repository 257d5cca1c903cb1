import { PartBudget } from "../../core/part-budget.ts";
import { sizeOfKept } from "../../encoding/json-size.ts";
import { type Json, parsed } from "./json.ts";
import type { Redact } from "./redaction.ts";

/** Limits of the kept fields of one object of an answer: their number, and the characters of their JSON in total. */
const MAX_FIELDS = 32;
const MAX_CHARS = 256 * 1024;

const NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** Fields about the gateway's own call at the provider. Only at the top level; nested fields of these names mean other things. */
const OF_THE_CALL: ReadonlySet<string> = new Set([
  "id",
  "object",
  "created",
  "created_at",
  "model",
  "provider",
  "request_id",
  "error",
  "usage",
  "parley",
]);

/** Fields about the gateway's account at the provider, at any depth. */
const OF_THE_ACCOUNT = /^(?:(?:organization|project|account)(?:_?id)?|cost|cost_details|cost_in_usd_ticks|billing)$/i;

/** Fields with state, at any depth. State must be sealed, so the contract has own fields for it. */
const STATE = /^encrypted_|signature$/i;

/** Whether a top-level field of an answer, or of an object in it, must not be passed to the caller. */
export function isOfTheGateway(name: string): boolean {
  return OF_THE_CALL.has(name) || isPrivate(name);
}

const isPrivate = (name: string): boolean => OF_THE_ACCOUNT.test(name) || STATE.test(name);

/** The JSON of a value without state and without fields about the gateway's account. */
export function toCallersJson(value: unknown): string {
  return JSON.stringify(value, (name, each: unknown) => (isPrivate(name) ? undefined : each));
}

interface FurtherOf {
  readonly prefix: string;
  readonly known: ReadonlySet<string>;
  readonly budget: PartBudget;
  readonly redact: Redact;
}

/** The further fields of one object, such as a tool's call. `prefix`, `known` and `budget` as of `FurtherFields`. */
export function furtherOf(of: Json, { prefix, known, budget, redact }: FurtherOf): Record<string, string> {
  const fields = new FurtherFields(prefix, known, budget);
  fields.add(of);
  return fields.read(redact);
}

/** A field, and its size by `sizeOfKept`. */
interface Kept {
  value: unknown;
  chars: number;
}

/** Collects the fields of an answer that the contract does not have, for `Choice.provider_details_json`. */
export class FurtherFields {
  readonly #prefix: string;
  readonly #known: ReadonlySet<string>;
  readonly #budget: PartBudget;
  readonly #values = new Map<string, Kept>();
  /** Characters of pieces that were joined. */
  #chars = 0;

  /**
   * `prefix`: prefix of the names, such as `openai.message.`; `known`: fields that are read elsewhere; `budget`: that of the answer. Fields
   * beyond it are left out.
   */
  constructor(prefix: string, known: ReadonlySet<string>, budget: PartBudget) {
    this.#prefix = prefix;
    this.#known = known;
    this.#budget = budget;
  }

  /** Adds the fields of an object. A later value replaces an earlier one; null is ignored. */
  add(of: Json): void {
    for (const key in of) if (this.#takes(key, of[key])) this.#set(key, of[key]);
  }

  /** Adds the fields of a piece of a streamed object. Texts and lists are appended to earlier ones, as official clients join them. */
  addPiece(of: Json): void {
    for (const key in of) {
      const piece = of[key];
      if (!this.#takes(key, piece)) continue;
      const before = this.#values.get(key);
      const isText = typeof piece === "string" && typeof before?.value === "string";
      if (before === undefined || !(isText || (Array.isArray(piece) && Array.isArray(before.value)))) {
        this.#set(key, Array.isArray(piece) ? [...(piece as unknown[])] : piece);
        continue;
      }
      const chars = isText ? piece.length : sizeOfKept(piece);
      if (!this.#mayJoin(chars)) continue;
      before.chars += chars;
      if (isText) before.value = (before.value as string) + piece;
      else for (const each of piece as unknown[]) (before.value as unknown[]).push(each);
    }
  }

  /** The fields as JSON texts by name, without the provider's credentials. Fields beyond MAX_CHARS are left out. */
  read(redact: Redact): Record<string, string> {
    const details: Record<string, string> = {};
    let left = MAX_CHARS;
    for (const [key, { value }] of this.#values) {
      const text = toCallersJson(value);
      const json = redact(text);
      left -= json.length;
      if (left < 0) break;
      if (json === text || parsed(json) !== undefined) details[this.#prefix + key] = json;
    }
    return details;
  }

  #takes(key: string, value: unknown): boolean {
    if (value === undefined || value === null || this.#known.has(key)) return false;
    if (isOfTheGateway(key) || !NAME.test(key)) return false;
    return this.#values.has(key) || this.#values.size < MAX_FIELDS;
  }

  #set(key: string, value: unknown): void {
    const kept = this.#values.get(key);
    const chars = sizeOfKept(value);
    if (!this.#budget.takeFurther(chars - (kept?.chars ?? 0))) return;
    if (kept === undefined) this.#values.set(key, { value, chars });
    else Object.assign(kept, { value, chars });
  }

  /** Counts a piece. Returns whether there is room for it. */
  #mayJoin(chars: number): boolean {
    this.#chars += chars;
    return this.#chars <= MAX_CHARS && this.#budget.takeFurther(chars);
  }
}

/** Adds the fields of a delta of an unknown kind to a block. Texts are appended to earlier ones. */
export function addDelta(block: Record<string, unknown>, delta: Json): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === "type") continue;
    const before = block[key];
    if (typeof value === "string" && typeof before === "string") block[key] = before + value;
    else if (NAME.test(key)) block[key] = value;
  }
}
