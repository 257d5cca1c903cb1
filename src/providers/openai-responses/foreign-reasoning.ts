import { Failure } from "../../core/failure.ts";
import type { UpstreamCall } from "../../core/provider.ts";
import { parseExactly } from "../../encoding/exact-json.ts";
import { isNativeItem } from "./parts.ts";
import type { ResponsesBody } from "./wire.ts";

/*
 * Only the organization and the service that encrypted reasoning can decrypt it. A conversation that began with another credential, or
 * at another provider of this dialect, carries reasoning for which the service refuses every request. The request is sent again without
 * the reasoning: it is lost, the conversation continues. The request has changed, so this is not a retry, and the router is not
 * involved.
 */

/**
 * Messages of OpenAI (code `invalid_encrypted_content`) and xAI for refused reasoning; and of OpenAI for reasoning at another position
 * than before, and for an item with an ID, such as a search, whose reasoning is missing.
 */
const REFUSED_REASONING =
  /encrypted content\b.{0,200}?could not be (?:verified|decrypted)|could not decrypt the provided encrypted_content|of type 'reasoning' was provided without its required following item|of type '\w{1,64}' was provided without its required 'reasoning' item/is;

/** Whether the conversation carries reasoning that the provider could refuse, or items that need reasoning before them. */
export function hasReasoning({ translation: { body } }: UpstreamCall): boolean {
  return body.includes('"encrypted_content":"') || body.includes('"id":"');
}

/**
 * If the conversation's reasoning was refused, the call without it, and without the items of the provider's own tools, which need the
 * reasoning before them. Throws any other reason.
 */
export function withoutReasoningOrThrow(call: UpstreamCall, reason: unknown): UpstreamCall {
  const isRefused = reason instanceof Failure && reason.code === "upstream_rejected";
  if (!isRefused || !REFUSED_REASONING.test(reason.message)) throw reason;
  const request = parseExactly(call.translation.body.toString()) as ResponsesBody;
  // The input of a caller's body may be a text.
  const items = Array.isArray(request.input) ? (request.input as ResponsesBody["input"]) : [];
  const input = items.filter((item) => item.type !== "reasoning" && !isNativeItem(item));
  if (input.length === items.length) throw reason;
  return { ...call, translation: { ...call.translation, body: Buffer.from(JSON.stringify({ ...request, input })) } };
}
