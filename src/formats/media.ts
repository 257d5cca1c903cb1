import type { Image } from "../../gen/parley/v1/message_pb.js";
import { EncodedSource } from "../encoding/base64.ts";
import type { HeldStrings } from "./held-strings.ts";

/** Base64 of an image's bytes; long ones are stored in `held`. Empty for an address. */
export function base64Of(source: Image["source"], held?: HeldStrings): string {
  if (source instanceof EncodedSource) return held?.hold(source.base64) ?? source.base64.toString();
  return source.case === "data" ? base64(source.value) : "";
}

/** Base64 of bytes, without copying them. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
