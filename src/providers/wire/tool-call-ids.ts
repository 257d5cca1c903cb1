import { createHash } from "node:crypto";

const MAX_ID_CHARS = 64;
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/;

/** Length of the stem of an ID, which leaves room for `_` and eight digits. */
const STEM_CHARS = 55;

/** The latest call of an ID. */
interface LatestCall {
  readonly wireId: string;
  /** Number at which the search for a free wire ID continues. Without it, each repeated ID would be searched from the first turn. */
  readonly turn: number;
}

/**
 * Maps tool call IDs to the provider's form: letters, digits, `_` and `-`, at most 64 characters, unique in a
 * conversation. Deterministic, and a continued conversation keeps its earlier IDs.
 */
export class ToolCallIds {
  /** Wire IDs in use, and the latest call of each ID. Created with the first call. */
  #taken: Set<string> | undefined;
  #latest: Map<string, LatestCall> | undefined;

  /** The ID for a new call. A repeated `id`, from providers that number calls per answer, becomes a different one. */
  open(id: string): string {
    const taken = (this.#taken ??= new Set<string>());
    const latest = (this.#latest ??= new Map<string, LatestCall>());
    let wireId = ACCEPTED.test(id) ? id : toAccepted(id);
    let turn = latest.get(id)?.turn ?? 1;
    // A long ID is hashed once, however many turns the search takes.
    const hashed = taken.has(wireId) && id.length > MAX_ID_CHARS ? toHash(id) : id;
    while (taken.has(wireId)) {
      turn += 1;
      wireId = withHash(id, `${hashed}#${turn}`);
    }
    taken.add(wireId);
    latest.set(id, { wireId, turn });
    return wireId;
  }

  /** The wire ID of the latest call with the conversation's ID `id`; undefined without one. */
  find(id: string): string | undefined {
    return this.#latest?.get(id)?.wireId;
  }
}

function toAccepted(id: string): string {
  return id !== "" && id.length <= MAX_ID_CHARS ? toAcceptedChars(id) : withHash(id, id);
}

function withHash(id: string, hashed: string): string {
  return `${toAcceptedChars(id.slice(0, STEM_CHARS))}_${toHash(hashed).slice(0, 8)}`;
}

function toAcceptedChars(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/g, "_");
}

function toHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
