/*
 * Request bodies of `generateContent` and `batchEmbedContents`, limited to the fields that we send, because the provider rejects unknown fields.
 * Undefined fields are omitted from the JSON.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Inline bytes; `data` is base64. */
export interface InlineData {
  readonly mimeType: string;
  readonly data: string;
}

/** A part of a content with exactly one data field. The signature must be sent back on the same part. */
export type Part = (
  | { readonly text: string }
  | { readonly inlineData: InlineData }
  | { readonly fileData: { readonly fileUri: string; readonly mimeType?: string } }
  | { readonly functionCall: { readonly id: string; readonly name: string; readonly args: JsonObject } }
  | { readonly functionResponse: FunctionResponse }
) & { thoughtSignature?: string; readonly videoMetadata?: VideoMetadata };

/** The part of a video that the model reads, and its frame rate. Offsets are protobuf durations in JSON, such as `12.5s`. */
export interface VideoMetadata {
  readonly startOffset: string | undefined;
  readonly endOffset: string | undefined;
  readonly fps: number | undefined;
}

/** A tool's result. `response` must be an object; `parts` are its images. */
interface FunctionResponse {
  readonly id: string;
  readonly name: string;
  readonly response: JsonObject;
  readonly parts?: readonly { readonly inlineData: InlineData }[];
}

/** One turn. Tool results are user turns. */
export interface Content {
  readonly role: "user" | "model";
  readonly parts: Part[];
}

/** System instruction: text parts only. */
export interface SystemInstruction {
  readonly parts: readonly { readonly text: string }[];
}

/** A function that the model may call. */
export interface FunctionDeclaration {
  readonly name: string;
  readonly description: string | undefined;
  readonly parametersJsonSchema: JsonObject | undefined;
}

/** Tool choice. `allowedFunctionNames` is valid only with ANY and VALIDATED. */
export interface FunctionCallingConfig {
  readonly mode: "NONE" | "ANY" | "VALIDATED";
  readonly allowedFunctionNames?: readonly string[];
}

/** Amount of thinking: a budget in tokens or a level, never both. */
export interface ThinkingConfig {
  readonly thinkingBudget?: number;
  readonly thinkingLevel?: string;
  readonly includeThoughts?: true;
}

/** Generation parameters. `maxOutputTokens` includes thinking. */
export interface GenerationConfig {
  readonly candidateCount: number | undefined;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
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

/** The request body. */
export interface GenerateContentRequest {
  readonly systemInstruction: SystemInstruction | undefined;
  readonly contents: readonly Content[];
  /** Beside the functions: tools that the provider runs itself. */
  readonly tools: readonly object[] | undefined;
  readonly toolConfig: { readonly functionCallingConfig: FunctionCallingConfig } | undefined;
  readonly generationConfig: GenerationConfig | undefined;
  /** The caller's settings, unchanged. */
  readonly safetySettings: readonly unknown[] | undefined;
  readonly serviceTier: "flex" | "standard" | "priority" | undefined;
}

/** The body of `batchEmbedContents`. */
export interface BatchEmbedContentsRequest {
  readonly requests: readonly {
    /** Must equal the model in the path. */
    readonly model: string;
    readonly content: { readonly parts: readonly { readonly text: string }[] };
    readonly taskType: string | undefined;
    readonly outputDimensionality: number | undefined;
  }[];
}
