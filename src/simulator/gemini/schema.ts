import * as z from "zod";

const blob = z.strictObject({ mimeType: z.string(), data: z.string(), displayName: z.string().optional() });
const file = z.strictObject({
  fileUri: z.string(),
  mimeType: z.string().optional(),
  displayName: z.string().optional(),
});

/** A protobuf duration in JSON. */
const duration = z.string().regex(/^\d+(?:\.\d{1,9})?s$/);

const videoMetadata = z.strictObject({
  startOffset: duration.optional(),
  endOffset: duration.optional(),
  fps: z.number().gt(0).max(24).optional(),
});

const part = z.strictObject({
  text: z.string().optional(),
  inlineData: blob.optional(),
  fileData: file.optional(),
  functionCall: z
    .strictObject({ id: z.string().optional(), name: z.string(), args: z.record(z.string(), z.unknown()).optional() })
    .optional(),
  functionResponse: z
    .strictObject({
      id: z.string().optional(),
      name: z.string(),
      response: z.record(z.string(), z.unknown()),
      parts: z.array(z.unknown()).optional(),
      willContinue: z.boolean().optional(),
      scheduling: z.string().optional(),
    })
    .optional(),
  executableCode: z.unknown().optional(),
  codeExecutionResult: z.unknown().optional(),
  toolCall: z.unknown().optional(),
  toolResponse: z.unknown().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  videoMetadata: videoMetadata.optional(),
  mediaResolution: z.unknown().optional(),
  partMetadata: z.unknown().optional(),
});

const content = z.strictObject({ role: z.string().optional(), parts: z.array(part).optional() });

/** OpenAPI schema keywords that the API accepts, at every depth. */
const openApiSchema: z.ZodType = z.lazy(() =>
  z.strictObject({
    type: z.string().optional(),
    format: z.string().optional(),
    title: z.string().optional(),
    description: z.string().optional(),
    nullable: z.boolean().optional(),
    enum: z.array(z.string()).optional(),
    items: openApiSchema.optional(),
    minItems: z.union([z.int(), z.string()]).optional(),
    maxItems: z.union([z.int(), z.string()]).optional(),
    minProperties: z.union([z.int(), z.string()]).optional(),
    maxProperties: z.union([z.int(), z.string()]).optional(),
    properties: z.record(z.string(), openApiSchema).optional(),
    required: z.array(z.string()).optional(),
    propertyOrdering: z.array(z.string()).optional(),
    anyOf: z.array(openApiSchema).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.union([z.int(), z.string()]).optional(),
    maxLength: z.union([z.int(), z.string()]).optional(),
    pattern: z.string().optional(),
    default: z.unknown().optional(),
    example: z.unknown().optional(),
  }),
);

const functionDeclaration = z.strictObject({
  name: z.string(),
  description: z.string().optional(),
  parameters: openApiSchema.optional(),
  parametersJsonSchema: z.unknown().optional(),
  response: z.unknown().optional(),
  responseJsonSchema: z.unknown().optional(),
  behavior: z.string().optional(),
});

const tool = z.strictObject({
  functionDeclarations: z.array(functionDeclaration).optional(),
  googleSearch: z.unknown().optional(),
  googleSearchRetrieval: z.unknown().optional(),
  codeExecution: z.unknown().optional(),
  urlContext: z.unknown().optional(),
  computerUse: z.unknown().optional(),
  fileSearch: z.unknown().optional(),
  googleMaps: z.unknown().optional(),
});

const functionCallingConfig = z.strictObject({
  mode: z.enum(["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]).optional(),
  allowedFunctionNames: z.array(z.string()).optional(),
  streamFunctionCallArguments: z.boolean().optional(),
});

const generationConfig = z.strictObject({
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  candidateCount: z.int().optional(),
  maxOutputTokens: z.int().optional(),
  stopSequences: z.array(z.string()).optional(),
  seed: z.int().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  responseLogprobs: z.boolean().optional(),
  logprobs: z.int().optional(),
  responseMimeType: z.string().optional(),
  responseSchema: openApiSchema.optional(),
  responseJsonSchema: z.unknown().optional(),
  responseModalities: z.array(z.enum(["MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO"])).optional(),
  imageConfig: z.strictObject({ aspectRatio: z.string().optional(), imageSize: z.string().optional() }).optional(),
  thinkingConfig: z
    .strictObject({
      includeThoughts: z.boolean().optional(),
      thinkingBudget: z.int().optional(),
      thinkingLevel: z.string().optional(),
    })
    .optional(),
  mediaResolution: z.string().optional(),
  speechConfig: z.unknown().optional(),
  enableEnhancedCivicAnswers: z.boolean().optional(),
});

/** Body of `generateContent`, with names in camel case. Unknown fields are rejected. */
export const generateSchema = z.strictObject({
  /** Accepted and ignored, because the path contains the model. */
  model: z.string().optional(),
  contents: z.array(content).default([]),
  systemInstruction: content.optional(),
  generationConfig: generationConfig.optional(),
  tools: z.array(tool).default([]),
  toolConfig: z
    .strictObject({
      functionCallingConfig: functionCallingConfig.optional(),
      retrievalConfig: z.unknown().optional(),
      includeServerSideToolInvocations: z.boolean().optional(),
    })
    .optional(),
  safetySettings: z
    .array(z.strictObject({ category: z.string(), threshold: z.string(), method: z.string().optional() }))
    .optional(),
  cachedContent: z.string().optional(),
  serviceTier: z.string().optional(),
  continuationToken: z.string().optional(),
  store: z.boolean().optional(),
  labels: z.record(z.string(), z.string()).optional(),
});

export type GenerateBody = z.infer<typeof generateSchema>;
export type GenerationConfig = z.infer<typeof generationConfig>;
export type Content = z.infer<typeof content>;
export type ContentPart = z.infer<typeof part>;
