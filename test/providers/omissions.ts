import { toJson } from "@bufbuild/protobuf";
import { type Clamp, ClampSchema, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import type { Translation } from "../../src/core/provider.ts";

/** Paths of the fields that a translation omits. Throws for an omission with another reason than the provider's. */
export function omittedOf({ omitted }: Pick<Translation, "omitted">): string[] {
  return omitted.map(({ field, reason }) => {
    if (reason !== OmissionReason.UNSUPPORTED) throw new Error(`${field} is omitted for ${OmissionReason[reason]}`);
    return field;
  });
}

/** A clamp in JSON. */
interface PlainClamp {
  readonly field: string;
  readonly requested: number | string;
  readonly sent: number | string;
}

/** The clamps of a translation. */
export function clampsOf({ clamped }: { readonly clamped: readonly Clamp[] }): PlainClamp[] {
  return clamped.map((clamp) => toJson(ClampSchema, clamp) as unknown as PlainClamp);
}
