import { create } from "@bufbuild/protobuf";
import { type Clamp, ClampSchema } from "../../../gen/parley/v1/report_pb.js";
import type { SentSize, Translation } from "../../core/provider.ts";

/** Tiers of service at no more than list prices, in the words of all dialects. */
const ORDINARY_TIERS: ReadonlySet<string> = new Set(["auto", "default", "standard", "standard_only", "flex"]);
/** The dearest tier that is documented costs twice the list price. */
const MAX_TIER_FACTOR = 2;

/** What of a finished body bounds its cost. */
type FinishedFacts = Pick<Translation, "streamed"> &
  Pick<SentSize, "maxTokens"> &
  Partial<Pick<SentSize, "searches" | "cacheWrite">> & {
    /** The tier of service that it asks for. */
    readonly tier?: string | undefined;
  };

/**
 * Collects what a translation could not honour. Fields go by their name in the OpenAI format, with indexes where they
 * are in a list: `seed`, `stop[1]`, `tools[0].strict`.
 */
export class TranslationLog {
  readonly #omitted: string[] = [];
  readonly #clamped: Clamp[] = [];
  #mediaBytes = 0;

  /** Says that a field was left out. */
  omit(field: string): void {
    this.#omitted.push(field);
  }

  /** Says that a field is left out when the request has it: the shape of most rules. */
  omitWhen(present: boolean, field: string): void {
    if (present) this.#omitted.push(field);
  }

  /** `value`, moved into the range and noted when it lies outside. */
  clamp(field: string, value: number, [min, max]: readonly [min: number, max: number]): number {
    const to = Math.min(Math.max(value, min), max);
    if (to !== value) this.#clamped.push(create(ClampSchema, { field, from: value, to }));
    return to;
  }

  /** A picture, recording or document in base64, for the body: what is written so is not text that has tokens. */
  base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
    const text = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
    this.#mediaBytes += text.length;
    return text;
  }

  /** The finished translation: `body` as JSON text, absent (undefined) fields left out. */
  finish(
    value: object,
    { streamed, maxTokens, tier, searches = false, cacheWrite = "none" }: FinishedFacts,
  ): Translation {
    const body = Buffer.from(JSON.stringify(value));
    const priceFactor = tier === undefined || ORDINARY_TIERS.has(tier) ? 1 : MAX_TIER_FACTOR;
    const textBytes = body.length - this.#mediaBytes;
    const sent: SentSize = { textBytes, maxTokens, priceFactor, searches, cacheWrite };
    return { body, omitted: this.#omitted, clamped: this.#clamped, streamed, sent };
  }
}
