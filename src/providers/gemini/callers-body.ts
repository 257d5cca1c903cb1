import type { CallersBody } from "../../core/provider.ts";
import { isSameList, keepsFields, setField } from "../wire/callers-body.ts";
import { array, type Json, object, string } from "../wire/json.ts";
import type { GenerateContentRequest, GenerationConfig } from "./wire.ts";

/**
 * The caller's body of `generateContent`, with the fields that the gateway sets: the token limit, the service tier, and the text
 * modality for an image model. Undefined for a body of another dialect, and when the translation `body` differs in meaning: in its
 * parts, their order, its tools or its configuration.
 */
export function toCallersBody(callers: CallersBody | undefined, body: GenerateContentRequest): object | undefined {
  const given = callers?.dialect === "gemini" ? callers.json : undefined;
  if (given === undefined || !saysTheSame(given, body)) return undefined;
  const own: Record<string, unknown> = { ...given };
  setField(own, "serviceTier", body.serviceTier);
  const { maxOutputTokens, responseModalities } = body.generationConfig ?? {};
  const config = object(given["generationConfig"]);
  const changes = {
    ...(maxOutputTokens !== config["maxOutputTokens"] && maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(responseModalities !== undefined && { responseModalities }),
  };
  if (Object.keys(changes).length > 0) own["generationConfig"] = { ...config, ...changes };
  return own;
}

const KEPT = [
  "temperature",
  "topP",
  "topK",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
  "responseLogprobs",
  "logprobs",
  "responseMimeType",
] as const;

/** Whether the caller's body has the meaning of the translation. The dialect can write some things in several ways. */
function saysTheSame(given: Json, body: GenerateContentRequest): boolean {
  return (
    isSameConfig(object(given["generationConfig"]), body.generationConfig ?? NO_CONFIG) &&
    isSameList(array(object(given["systemInstruction"])["parts"]), body.systemInstruction?.parts ?? [], isSamePart) &&
    isSameTools(given, body) &&
    isSameConversation(array(given["contents"]), body)
  );
}

const NO_CONFIG: Partial<GenerationConfig> = {};

function isSameConfig(given: Json, config: Partial<GenerationConfig>): boolean {
  const thinking = object(given["thinkingConfig"]);
  const isSameThinking =
    (thinking["thinkingBudget"] == null && thinking["thinkingLevel"] == null) ||
    (thinking["thinkingBudget"] === config.thinkingConfig?.thinkingBudget &&
      string(thinking["thinkingLevel"]).toUpperCase() === (config.thinkingConfig?.thinkingLevel ?? ""));
  return (
    keepsFields(given, config, KEPT) &&
    isSameThinking &&
    (given["candidateCount"] ?? 1) === (config.candidateCount ?? 1) &&
    (given["imageConfig"] == null) === (config.imageConfig === undefined)
  );
}

/** Whether the conversations are equal. Neighbouring contents of one role count as one turn; without a role it is the user's. */
function isSameConversation(given: readonly unknown[], { contents }: GenerateContentRequest): boolean {
  const ofCaller = given.flatMap((content) => {
    const { role = "user", parts } = object(content);
    return array(parts).map((part) => ({ role, part }));
  });
  const translated = contents.flatMap(({ role, parts }) => parts.map((part) => ({ role, part })));
  return isSameList(ofCaller, translated, (one, other) => {
    return object(one)["role"] === other.role && isSamePart(object(one)["part"], other.part);
  });
}

function isSamePart(given: unknown, translated: object): boolean {
  const [one, other] = [object(given), translated as Json];
  if (one["thoughtSignature"] !== other["thoughtSignature"] || one["thought"] === true) return false;
  if (other["text"] !== undefined) return one["text"] === other["text"];
  return (
    isSameOne(one, other, { field: "inlineData", name: "mimeType" }) &&
    isSameOne(one, other, { field: "fileData", name: "fileUri" }) &&
    isSameOne(one, other, { field: "functionCall", name: "name" }) &&
    isSameOne(one, other, { field: "functionResponse", name: "name" })
  );
}

function isSameOne(
  one: Json,
  other: Json,
  { field, name }: { readonly field: string; readonly name: string },
): boolean {
  if (one[field] === undefined || other[field] === undefined) return one[field] === other[field];
  return object(one[field])[name] === object(other[field])[name];
}

function isSameTools(given: Json, { tools = [], toolConfig }: GenerateContentRequest): boolean {
  const mode = string(object(object(given["toolConfig"])["functionCallingConfig"])["mode"]).toUpperCase();
  const isSameMode = mode === (toolConfig?.functionCallingConfig.mode ?? mode);
  return isSameMode && isSameList(array(given["tools"]).flatMap(namesOf), tools.flatMap(namesOf), Object.is);
}

/** Names of a tool's functions, and of its other fields. */
function namesOf(tool: unknown): string[] {
  const { functionDeclarations, ...native } = object(tool);
  return [...array(functionDeclarations).map((one) => string(object(one)["name"])), ...Object.keys(native)];
}
