import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { releaseDecoded, releaseMemory } from "../core/release-memory.ts";
import { requireDecodable } from "./arrival-limits.ts";

/**
 * Decodes a request, and releases the memory of its bytes. Throws what `requireDecodable` throws, and any other error for bytes that are
 * not a message.
 */
export function decodeRequest<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    const sharesBytes = requireDecodable(desc, bytes);
    const message = fromBinary(desc, bytes);
    if (sharesBytes) releaseDecoded(bytes, message);
    else releaseMemory([bytes]);
    return message;
  } catch (reason) {
    releaseMemory([bytes]);
    throw reason;
  }
}
