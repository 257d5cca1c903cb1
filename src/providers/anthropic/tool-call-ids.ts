import { createHash } from "node:crypto";

const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/;

/** Leaves room for `_` and eight digits. */
const STEM_CHARS = 55;

/**
 * Maps tool call IDs to the provider's form: letters, digits, `_` and `-`, at most 64 characters, unique in a
 * conversation. Deterministic, and a continued conversation keeps its earlier IDs.
 */
export class ToolCallIds {
  readonly #latest = new Map<string, string>();
  readonly #taken = new Set<string>();

  /** The ID for a new call. A repeated `id`, as providers that count per answer give, becomes another one. */
  open(id: string): string {
    let wireId = ACCEPTED.test(id) ? id : toAccepted(id);
    for (let turn = 2; this.#taken.has(wireId); turn++) wireId = withHash(id, `${id}#${turn}`);
    this.#taken.add(wireId);
    this.#latest.set(id, wireId);
    return wireId;
  }

  /** The ID of the latest call that the conversation knows as `id`; undefined when there was none. */
  find(id: string): string | undefined {
    return this.#latest.get(id);
  }
}

function toAccepted(id: string): string {
  const replaced = id.replace(/[^A-Za-z0-9_-]/g, "_");
  return ACCEPTED.test(replaced) ? replaced : withHash(id, id);
}

function withHash(id: string, hashed: string): string {
  const stem = id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, STEM_CHARS);
  return `${stem}_${createHash("sha256").update(hashed).digest("hex").slice(0, 8)}`;
}
