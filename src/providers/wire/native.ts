import type { NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import { type Json, object } from "./json.ts";
import type { TranslationLog } from "./translation.ts";

/** A native block or tool as the dialect writes it; undefined, and logged as omitted, when it is of another dialect. */
export function toNative(
  { dialect, json }: NativeBlock,
  own: string,
  { log, field }: { readonly log: TranslationLog; readonly field: string },
): Json | undefined {
  if (dialect === own) return object(log.verbatim(json));
  log.omit(field);
  return undefined;
}
