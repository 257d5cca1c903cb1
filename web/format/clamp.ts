import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Clamp } from "../../gen/parley/v1/report_pb.js";

/** Formats a clamped field: `temperature 1.5 → 1`, `reasoning.effort max → high`. */
export function describeClamp({ field, requested, sent }: Clamp): string {
  return `${field} ${describeValue(requested)} → ${describeValue(sent)}`;
}

/** Formats a value in the JSON form of its field. Enum values are written without their prefix. */
function describeValue(value: Value | undefined): string {
  const json = value === undefined ? "nothing" : toJson(ValueSchema, value);
  if (typeof json !== "string") return JSON.stringify(json);
  return json.startsWith("REASONING_EFFORT_") ? json.slice("REASONING_EFFORT_".length).toLowerCase() : json;
}
