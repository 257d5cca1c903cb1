/*
 * The request body of `generateContent`, as far as we write it. Unknown fields are refused there, so these types are
 * the whole of what is ever sent. Absent fields are undefined and vanish when the body becomes JSON.
 */

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Bytes inside the body: `data` is base64. */
export interface InlineData {
  readonly mimeType: string;
  readonly data: string;
}

/** A piece of a content. Exactly one data field each; the signature must come back on the part that it came with. */
export type Part = (
  | { readonly text: string }
  | { readonly inlineData: InlineData }
  | { readonly functionCall: { readonly id: string; readonly name: string; readonly args: JsonObject } }
  | { readonly functionResponse: FunctionResponse }
) & { thoughtSignature?: string };

/** A tool's result; `response` must be an object, `parts` are pictures that belong to it. */
export interface FunctionResponse {
  readonly id: string;
  readonly name: string;
  readonly response: JsonObject;
  readonly parts?: readonly { readonly inlineData: InlineData }[];
}

/** One turn. Results of tools are a user's turn. */
export interface Content {
  readonly role: "user" | "model";
  readonly parts: Part[];
}

/** Instructions: text parts only. */
export interface SystemInstruction {
  readonly parts: readonly { readonly text: string }[];
}

/** A function that the model may call. */
export interface FunctionDeclaration {
  readonly name: string;
  readonly description: string | undefined;
  readonly parametersJsonSchema: JsonObject | undefined;
}

/** Whether and which functions are called. `allowedFunctionNames` goes with ANY and VALIDATED only. */
export interface FunctionCallingConfig {
  readonly mode: "NONE" | "ANY" | "VALIDATED";
  readonly allowedFunctionNames?: readonly string[];
}

/** How much the model thinks: a budget in tokens or a level, never both. */
export interface ThinkingConfig {
  readonly thinkingBudget?: number;
  readonly thinkingLevel?: string;
  readonly includeThoughts?: true;
}

/** How the answer is made. `maxOutputTokens` includes thinking. */
export interface GenerationConfig {
  readonly candidateCount: number | undefined;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly stopSequences: readonly string[] | undefined;
  readonly seed: number | undefined;
  readonly presencePenalty: number | undefined;
  readonly frequencyPenalty: number | undefined;
  readonly responseLogprobs: true | undefined;
  readonly logprobs: number | undefined;
  readonly responseMimeType: "application/json" | undefined;
  readonly responseJsonSchema: JsonObject | undefined;
  readonly responseModalities: readonly string[] | undefined;
  readonly imageConfig: { readonly aspectRatio?: string; readonly imageSize?: string } | undefined;
  readonly thinkingConfig: ThinkingConfig | undefined;
}

/** The whole body. */
export interface GenerateContentRequest {
  readonly systemInstruction: SystemInstruction | undefined;
  readonly contents: readonly Content[];
  readonly tools: readonly [{ readonly functionDeclarations: readonly FunctionDeclaration[] }] | undefined;
  readonly toolConfig: { readonly functionCallingConfig: FunctionCallingConfig } | undefined;
  readonly generationConfig: GenerationConfig | undefined;
  readonly serviceTier: "flex" | "standard" | "priority" | undefined;
}
