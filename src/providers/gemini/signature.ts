import type { UpstreamModel } from "../../core/provider.ts";
import type { Part } from "./wire.ts";

/** Accepted by the provider in place of an unknown signature: it skips the check. */
export const SENTINEL = "skip_thought_signature_validator";

/** Form of a signature. The provider refuses the whole request for one that it cannot parse. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/**
 * Whether the model checks that its signatures come back: from the third generation on, which is also the one that
 * takes pictures inside a tool's result and combines tools with JSON output. A thinking level is its mark; models of
 * it that take a budget say `preservedReasoning`.
 */
export function checksSignatures({ capabilities }: UpstreamModel): boolean {
  return capabilities.reasoning === "level" || capabilities.preservedReasoning;
}

/** `signature` if it can be one; undefined for anything else. */
export function knownSignature(signature: string | undefined): string | undefined {
  return signature !== undefined && BASE64.test(signature) ? signature : undefined;
}

/**
 * Puts the message's own signature back where it came from, as far as that is known. Text models sign their last text.
 * Image models sign the first part and every picture. Without any text it came alone, in an empty part at the end.
 */
export function signText(parts: Part[], signature: string): void {
  const text = hasPicture(parts) ? parts.find(isText) : parts.findLast(isText);
  if (text === undefined) parts.push({ text: "", thoughtSignature: signature });
  else text.thoughtSignature = signature;
}

/**
 * Fills in what a checking model would miss: on the first call of a step, on every picture, and on the first part of
 * an answer with pictures. The gateway keeps no signatures itself, for it keeps no state.
 */
export function fillSignatures(parts: readonly Part[]): void {
  const pictures = hasPicture(parts);
  const firstCall = parts.find((part) => "functionCall" in part);
  for (const [index, part] of parts.entries()) {
    const checked = part === firstCall || "inlineData" in part || (pictures && index === 0);
    if (checked) part.thoughtSignature ??= SENTINEL;
  }
}

const isText = (part: Part): boolean => "text" in part;

const hasPicture = (parts: readonly Part[]): boolean => parts.some((part) => "inlineData" in part);
