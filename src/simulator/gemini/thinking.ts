import type { GeminiContent, GeminiPart } from "../../formats/gemini/content-schema.ts";
import type { GenerationConfig } from "../../formats/gemini/schema.ts";
import { type Answer, isEffort, type Part, Refusal } from "../answer.ts";
import { fingerprint } from "../dice.ts";
import { findModel } from "../models.ts";
import type { ReasoningOrder } from "../prompt.ts";

/** Values that the API accepts in place of an unknown signature. */
const SENTINELS = new Set(["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]);

const DEFAULT_EFFORT = "high";

function refuseUnless(isRight: boolean, message: string): void {
  if (!isRight) throw new Refusal(400, message);
}

/**
 * Returns the requested thinking. Without a `thinkingConfig` the simulator does not think, unlike the real models, to
 * keep answers short.
 */
export function toReasoning({ thinkingConfig }: GenerationConfig): ReasoningOrder | undefined {
  if (!thinkingConfig || thinkingConfig.thinkingBudget === 0) return undefined;
  const { thinkingLevel, thinkingBudget, includeThoughts } = thinkingConfig;
  const level = thinkingLevel?.toLowerCase() ?? "";
  return {
    effort: isEffort(level) ? level : DEFAULT_EFFORT,
    maxTokens: thinkingBudget != null && thinkingBudget > 0 ? thinkingBudget : undefined,
    shown: includeThoughts === true,
  };
}

/** Checks the thinking parameters. Listed models belong to the third generation, which cannot disable thinking. */
export function checkThinking({ thinkingConfig }: GenerationConfig, model: string): void {
  if (!thinkingConfig) return;
  const { thinkingBudget, thinkingLevel, includeThoughts } = thinkingConfig;
  refuseUnless(
    thinkingBudget == null || thinkingLevel == null,
    "You can only set only one of thinking budget and thinking level.",
  );
  const level = thinkingLevel?.toLowerCase();
  // The format also takes NONE and MAX.
  refuseUnless(
    level === undefined || level === "thinking_level_unspecified" || (isEffort(level) && level !== "max"),
    `Invalid value at 'generation_config.thinking_config.thinking_level' (type.googleapis.com/` +
      `google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), ${JSON.stringify(thinkingLevel)}`,
  );
  refuseUnless(
    thinkingBudget == null || thinkingBudget >= -1,
    `The thinking budget ${thinkingBudget} is invalid. Please choose a value of at least 0, or -1 for a dynamic budget.`,
  );
  if (thinkingBudget !== 0) return;
  refuseUnless(findModel(model) === undefined, "Budget 0 is invalid. This model only works in thinking mode.");
  refuseUnless(includeThoughts !== true, "Include_thoughts is only enabled when thinking is enabled.");
}

/** Returns the signature of a part with this content. Real signatures are opaque. */
export function sign(content: string): string {
  return Buffer.from(`simulated ${fingerprint(content)}`).toString("base64");
}

/** Returns the signed content of a call. */
export function describeCall(name: string, args: unknown): string {
  return `${name} ${JSON.stringify(args)}`;
}

/** Returns the signature of a part of an answer: of every image, of the first call, and of text after reasoning; otherwise empty. */
export function sealPart(part: Part, { parts }: Answer): string {
  switch (part.kind) {
    case "reasoning":
      return "";
    case "text":
      return parts.some((other) => other.kind === "reasoning") ? sign(part.tokens.join("")) : "";
    case "image":
      return sign(`picture of ${part.bytes.length} bytes`);
    case "call":
      return part === parts.find((other) => other.kind === "call") ? sign(describeCall(part.name, part.input)) : "";
  }
}

/**
 * Checks the signatures of listed models, which belong to the third generation: in the current turn, the first call of
 * each step must have its signature or a sentinel. Throws `Refusal` (400).
 */
export function checkSignatures(contents: readonly GeminiContent[], model: string): void {
  if (findModel(model) === undefined) return;
  const turnStart = contents.findLastIndex(
    ({ role, parts }) => role !== "model" && !parts?.some((part) => part.functionResponse),
  );
  for (const [index, { parts }] of contents.entries()) {
    const call = parts?.find((part) => part.functionCall);
    refuseUnless(
      index < turnStart || call === undefined || call.thoughtSignature != null,
      "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, " +
        `and missing thought_signature may lead to degraded model performance. Function call \`${call?.functionCall?.name}\`, ` +
        `position ${index + 1}.`,
    );
    for (const part of parts ?? []) refuseUnless(isIntact(part), "Corrupted thought signature.");
  }
}

/** Whether a part's signature, if any, is unchanged. */
function isIntact({ thoughtSignature, functionCall }: GeminiPart): boolean {
  if (thoughtSignature == null || SENTINELS.has(thoughtSignature)) return true;
  if (functionCall) return thoughtSignature === sign(describeCall(functionCall.name, functionCall.args ?? {}));
  return Buffer.from(thoughtSignature, "base64").toString().startsWith("simulated ");
}
