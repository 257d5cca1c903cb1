import { create } from "@bufbuild/protobuf";
import { type Clamp, ClampSchema } from "../../gen/parley/v1/report_pb.js";
import type { Translation } from "../core/provider.ts";

/**
 * Collects what a translation could not honour. Fields go by their name in the OpenAI format, with indexes where they
 * are in a list: `seed`, `stop[1]`, `tools[0].strict`.
 */
export class TranslationLog {
  readonly #omitted: string[] = [];
  readonly #clamped: Clamp[] = [];

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

  /** The finished translation: `body` as JSON text, absent (undefined) fields left out. */
  finish(body: object, { streamed }: { readonly streamed: boolean }): Translation {
    return { body: Buffer.from(JSON.stringify(body)), omitted: this.#omitted, clamped: this.#clamped, streamed };
  }
}
