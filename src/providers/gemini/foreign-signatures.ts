import type { Emit, UpstreamCall } from "../../core/provider.ts";
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

/** Calls `ask`, and calls it again without the conversation's signatures if they are rejected. */
export async function askForgiving<T>(call: UpstreamCall, ask: (call: UpstreamCall) => Promise<T>): Promise<T> {
  try {
    return await ask(call);
  } catch (reason) {
    return ask(unsignedOrThrow(call, reason));
  }
}

/** The same for a stream. A stream that has emitted a chunk is not repeated. */
export async function streamForgiving(
  call: UpstreamCall,
  ask: (call: UpstreamCall, emit: Emit) => Promise<void>,
  emit: Emit,
): Promise<void> {
  let begun = false;
  try {
    await ask(call, (batch) => {
      begun = true;
      return emit(batch);
    });
  } catch (reason) {
    if (begun) throw reason;
    await ask(unsignedOrThrow(call, reason), emit);
  }
}

/** Whether the conversation carries signatures that the provider could reject. */
export function isSigned({ translation: { body } }: UpstreamCall): boolean {
  return body.includes('"thoughtSignature":"');
}

function unsignedOrThrow(call: UpstreamCall, reason: unknown): UpstreamCall {
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
