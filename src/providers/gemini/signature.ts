import type { UpstreamModel } from "../../core/provider.ts";
import { isResponsesState } from "../wire/responses-state.ts";
import type { Part } from "./wire.ts";

/** Value that the provider accepts in place of an unknown signature. It disables the check. */
export const SENTINEL = "skip_thought_signature_validator";

/** Form of a signature. The provider rejects the whole request for a signature that it cannot parse. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/**
 * Whether the model validates that its signatures are sent back. This is the third generation and later, which also
 * accepts images inside a tool's result and combines tools with JSON output. It is recognised by a thinking level;
 * models of that generation with a thinking budget set `preservedReasoning`.
 */
export function checksSignatures({ capabilities }: UpstreamModel): boolean {
  return capabilities.reasoning === "level" || capabilities.preservedReasoning;
}

/** Returns `signature` if it has the form of one of this provider, otherwise undefined. */
export function knownSignature(signature: string | undefined): string | undefined {
  if (signature === undefined || isResponsesState(signature)) return undefined;
  return BASE64.test(signature) ? signature : undefined;
}

/**
 * Sets SENTINEL where a validating model requires a signature: on the first call of a step, on every image, and on the
 * first part of an answer with images. The gateway is stateless and stores no signatures.
 */
export function fillSignatures(parts: readonly Part[]): void {
  const pictures = hasPicture(parts);
  const firstCall = parts.find((part) => "functionCall" in part);
  for (const [index, part] of parts.entries()) {
    const checked = part === firstCall || "inlineData" in part || (pictures && index === 0);
    if (checked) part.thoughtSignature ??= SENTINEL;
  }
}

const hasPicture = (parts: readonly Part[]): boolean => parts.some((part) => "inlineData" in part);
