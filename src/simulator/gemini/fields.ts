/*
 * The fields that Gemini's API has, of which the format reads some and lets the others pass. Names are in camel case; the service
 * reads snake case too.
 */

type Fields = Readonly<Record<string, string>>;

function below(place: string, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([at, names]) => [place + at, names]));
}

const CONTENT = {
  "": "role parts",
  ".parts[]":
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse audioTranscription thought thoughtSignature videoMetadata mediaResolution mediaProcessing speechMetadata partMetadata",
  ".parts[].inlineData": "mimeType data displayName",
  ".parts[].fileData": "fileUri mimeType displayName",
  ".parts[].functionCall": "id name args",
  ".parts[].functionResponse": "id name response parts willContinue scheduling",
  ".parts[].videoMetadata": "startOffset endOffset fps",
} as const;

const REQUEST = {
  "": "model contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent serviceTier continuationToken store labels",
  ...below(".contents[]", CONTENT),
  ...below(".systemInstruction", CONTENT),
  ".generationConfig":
    "temperature topP topK candidateCount maxOutputTokens stopSequences seed presencePenalty frequencyPenalty responseLogprobs logprobs responseMimeType responseSchema responseJsonSchema responseModalities imageConfig thinkingConfig mediaResolution speechConfig audioTranscriptionConfig enableEnhancedCivicAnswers",
  ".generationConfig.imageConfig": "aspectRatio imageSize",
  ".generationConfig.thinkingConfig": "includeThoughts thinkingBudget thinkingLevel",
  ".tools[]":
    "functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext computerUse fileSearch googleMaps mcpServers",
  ".tools[].functionDeclarations[]":
    "name description parameters parametersJsonSchema response responseJsonSchema behavior",
  ".toolConfig": "functionCallingConfig retrievalConfig includeServerSideToolInvocations",
  ".toolConfig.functionCallingConfig": "mode allowedFunctionNames",
  ".safetySettings[]": "category threshold",
} as const;

const EMBEDDING = {
  "": "model content taskType title outputDimensionality",
  ".content": "role parts",
  ".content.parts[]": "text",
} as const;

/** The fields of requests, by method, and of the objects in them that have no others. `[]`: of each element. */
export const FIELDS: Fields = {
  ...below("generate", REQUEST),
  count: "contents generateContentRequest",
  ...below("count.contents[]", CONTENT),
  ...below("count.generateContentRequest", REQUEST),
  ...below("embed", EMBEDDING),
  batch: "requests",
  ...below("batch.requests[]", EMBEDDING),
};

/** The keywords of a schema in the service's own form, a part of OpenAPI's. */
export const SCHEMA_KEYWORDS =
  "type format title description nullable enum items minItems maxItems minProperties maxProperties properties required propertyOrdering anyOf minimum maximum minLength maxLength pattern default example";

/** Converts `system_instruction` to `systemInstruction`. */
export function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}

/** Converts `systemInstruction` to `system_instruction`, the spelling in the API's error messages. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}
