import type { UpstreamCall } from "../../core/provider.ts";
import { parseExactly } from "../../encoding/exact-json.ts";
import { isRefusedSignature } from "./failure.ts";
import { SENTINEL } from "./signature.ts";
import type { GenerateContentRequest } from "./wire.ts";

/*
 * A signature is valid only for the account and route that created it. A conversation that began under another key, or
 * directly at the provider, carries signatures that the provider rejects as corrupted on every call. The request is
 * sent again with SENTINEL in their place: the earlier reasoning is lost, the conversation continues. The request has
 * changed, so this is not a retry, and the router is not involved.
 */

/** Whether the conversation carries signatures that the provider could reject. */
export function isSigned({ translation: { body } }: UpstreamCall): boolean {
  return body.includes('"thoughtSignature":"');
}

/** The call without the conversation's signatures, if they were rejected. Throws any other reason. */
export function unsignedOrThrow(call: UpstreamCall, reason: unknown): UpstreamCall {
  if (!isRefusedSignature(reason)) throw reason;
  const request = parseExactly(call.translation.body.toString()) as GenerateContentRequest;
  let changed = false;
  for (const part of request.contents.flatMap(({ parts }) => parts)) {
    if (part.thoughtSignature === undefined || part.thoughtSignature === SENTINEL) continue;
    part.thoughtSignature = SENTINEL;
    changed = true;
  }
  if (!changed) throw reason;
  return { ...call, translation: { ...call.translation, body: Buffer.from(JSON.stringify(request)) } };
}
