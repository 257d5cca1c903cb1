import type { PartBudget } from "../../core/part-budget.ts";
import { sizeOfKept } from "../../encoding/json-size.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, isObject, type Json, object } from "../wire/json.ts";
import type { Redact } from "../wire/redaction.ts";

/** Fields of a candidate by their names in `Choice.provider_details_json`. */
const FIELDS = {
  "gemini.grounding_metadata": "groundingMetadata",
  "gemini.safety_ratings": "safetyRatings",
  "gemini.citation_metadata": "citationMetadata",
  "gemini.url_context_metadata": "urlContextMetadata",
} as const;

const ENTRIES = Object.entries(FIELDS);

/** Fields of a candidate that are read. */
const OF_CANDIDATE: ReadonlySet<string> = new Set([
  "content",
  "finishReason",
  "index",
  "logprobsResult",
  "tokenCount",
  ...Object.values(FIELDS),
]);

/** Largest JSON text of a detail. A larger one is dropped. */
const MAX_DETAIL_BYTES = 256 * 1024;

/** Collects the details of a candidate beside its content. */
export class ProviderDetails {
  /** Values by name. */
  readonly #values = new Map<string, { readonly value: unknown; readonly chars: number }>();
  readonly #further: FurtherFields;
  readonly #budget: PartBudget;

  /** `budget`: that of the answer. Details beyond it are left out. */
  constructor(budget: PartBudget) {
    this.#budget = budget;
    this.#further = new FurtherFields("gemini.", OF_CANDIDATE, budget);
  }

  /** Adds the details in one piece of a candidate. A later value replaces an earlier one, unless it is empty. */
  add(candidate: Json): void {
    for (const [name, field] of ENTRIES) {
      const value = candidate[field];
      if (hasEntries(value)) this.#set(name, value);
    }
    this.#further.add(candidate);
  }

  /** The details as JSON texts by name, and the grounding unless it was dropped. */
  read(redact: Redact): { readonly details: Record<string, string>; readonly grounding: Json } {
    const details = this.#further.read(redact);
    for (const [name, { value }] of this.#values) {
      const json = JSON.stringify(value);
      if (Buffer.byteLength(json) <= MAX_DETAIL_BYTES) details[name] = json;
      else this.#values.delete(name);
    }
    return { details, grounding: object(this.#values.get("gemini.grounding_metadata")?.value) };
  }

  #set(name: string, value: unknown): void {
    const chars = sizeOfKept(value);
    if (this.#budget.takeFurther(chars - (this.#values.get(name)?.chars ?? 0)))
      this.#values.set(name, { value, chars });
  }
}

/** Whether a value is a non-empty object or array. Texts are excluded, because each of their characters would count as a key. */
function hasEntries(value: unknown): boolean {
  if (!isObject(value)) return array(value).length > 0;
  for (const _ in value) return true;
  return false;
}
