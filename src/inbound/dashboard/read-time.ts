import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { invalidField } from "../../core/failure.ts";

/** A moment in Unix milliseconds. Throws `invalid_request` for one that no completion can have. */
export function readTime(field: string, time: Timestamp): number {
  const atMs = timestampMs(time);
  if (Number.isSafeInteger(atMs) && atMs >= 0) return atMs;
  throw invalidField(field, "must be a time after 1970");
}
