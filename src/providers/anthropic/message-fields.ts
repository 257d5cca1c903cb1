import type { PartBudget } from "../../core/part-budget.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { type Json, object } from "../wire/json.ts";
import type { Redact } from "../wire/redaction.ts";

const OF_MESSAGE: ReadonlySet<string> = new Set([
  "type",
  "role",
  "content",
  "stop_reason",
  "stop_sequence",
  "stop_details",
  // In the event that ends a message.
  "delta",
]);

/** Counts that `usage.ts` reads; callers get them in the fields of their format. */
const OF_USAGE: ReadonlySet<string> = new Set([
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "cache_creation",
  "output_tokens",
  "output_tokens_details",
  "server_tool_use",
]);

/** The fields of a message and of its usage that the contract does not have, such as `container`. */
export class MessageFields {
  readonly #message: FurtherFields;
  readonly #usage: FurtherFields;

  /** `budget`: that of the answer. */
  constructor(budget: PartBudget) {
    this.#message = new FurtherFields("anthropic.", OF_MESSAGE, budget);
    this.#usage = new FurtherFields("anthropic.usage.", OF_USAGE, budget);
  }

  /** Adds the fields of a message, or of the event that ends it and its delta. */
  add(message: Json): void {
    this.#message.add(message);
    this.#message.add(object(message["delta"]));
    this.#usage.add(object(message["usage"]));
  }

  read(redact: Redact): Record<string, string> {
    return { ...this.#message.read(redact), ...this.#usage.read(redact) };
  }
}
