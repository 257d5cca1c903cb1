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

/** The clamps of a translation, with their values in JSON. */
export function clampsOf({ clamped }: { readonly clamped: readonly Clamp[] }): unknown[] {
  return clamped.map((clamp) => toJson(ClampSchema, clamp));
}
