import type {
  Blob,
  Content,
  EmbedContentConfig,
  FileData,
  FunctionCall,
  FunctionCallingConfig,
  FunctionDeclaration,
  FunctionResponse,
  GenerateContentConfig,
  GenerateContentParameters,
  ImageConfig,
  Part,
  SafetySetting,
  Schema,
  ThinkingConfig,
  Tool,
  ToolConfig,
  VideoMetadata,
} from "@google/genai";
import { describe, expect, it } from "vitest";
import { FIELDS, SCHEMA_KEYWORDS } from "../../src/simulator/gemini/fields.ts";

type Names<T> = Readonly<Record<keyof T, true>>;

/** Settings of the client itself. */
type OfClient =
  | "httpOptions"
  | "abortSignal"
  | "shouldReturnHttpResponse"
  | "automaticFunctionCalling"
  | "automaticContinuation";

/** What the client sends to another service of the vendor only. */
type OfEnterprise =
  | "routingConfig"
  | "modelSelectionConfig"
  | "audioTimestamp"
  | "modelArmorConfig"
  | "generationOutputConfig";

/** What the client sends beside `generationConfig`. */
type Beside =
  | "systemInstruction"
  | "safetySettings"
  | "tools"
  | "toolConfig"
  | "labels"
  | "cachedContent"
  | "serviceTier"
  | "continuationToken"
  | "store";

/** The fields of each place, in the client's types. */
const OF_CLIENT: Readonly<Record<string, object>> = {
  request: {
    model: true,
    contents: true,
    generationConfig: true,
    systemInstruction: true,
    safetySettings: true,
    tools: true,
    toolConfig: true,
    labels: true,
    cachedContent: true,
    serviceTier: true,
    continuationToken: true,
    store: true,
  } satisfies Names<
    Pick<GenerateContentConfig, Beside> & Omit<GenerateContentParameters, "config"> & { generationConfig: object }
  >,
  "request.generationConfig": {
    temperature: true,
    topP: true,
    topK: true,
    candidateCount: true,
    maxOutputTokens: true,
    stopSequences: true,
    responseLogprobs: true,
    logprobs: true,
    presencePenalty: true,
    frequencyPenalty: true,
    seed: true,
    responseMimeType: true,
    responseSchema: true,
    responseJsonSchema: true,
    responseModalities: true,
    mediaResolution: true,
    speechConfig: true,
    thinkingConfig: true,
    audioTranscriptionConfig: true,
    imageConfig: true,
    enableEnhancedCivicAnswers: true,
  } satisfies Names<Omit<GenerateContentConfig, Beside | OfClient | OfEnterprise>>,
  "request.generationConfig.imageConfig": { aspectRatio: true, imageSize: true } satisfies Names<
    Omit<
      ImageConfig,
      "personGeneration" | "outputMimeType" | "outputCompressionQuality" | "imageOutputOptions" | "prominentPeople"
    >
  >,
  "request.generationConfig.thinkingConfig": {
    includeThoughts: true,
    thinkingBudget: true,
    thinkingLevel: true,
  } satisfies Names<ThinkingConfig>,
  "request.tools[]": {
    functionDeclarations: true,
    googleSearch: true,
    googleSearchRetrieval: true,
    codeExecution: true,
    urlContext: true,
    computerUse: true,
    fileSearch: true,
    googleMaps: true,
    mcpServers: true,
  } satisfies Names<Omit<Tool, "retrieval" | "enterpriseWebSearch" | "exaAiSearch" | "parallelAiSearch">>,
  "request.tools[].functionDeclarations[]": {
    name: true,
    description: true,
    parameters: true,
    parametersJsonSchema: true,
    response: true,
    responseJsonSchema: true,
    behavior: true,
  } satisfies Names<FunctionDeclaration>,
  "request.toolConfig": {
    functionCallingConfig: true,
    retrievalConfig: true,
    includeServerSideToolInvocations: true,
  } satisfies Names<ToolConfig>,
  "request.toolConfig.functionCallingConfig": {
    mode: true,
    allowedFunctionNames: true,
  } satisfies Names<Omit<FunctionCallingConfig, "streamFunctionCallArguments">>,
  "request.safetySettings[]": { category: true, threshold: true } satisfies Names<Omit<SafetySetting, "method">>,
  content: { role: true, parts: true } satisfies Names<Content>,
  "content.parts[]": {
    text: true,
    inlineData: true,
    fileData: true,
    functionCall: true,
    functionResponse: true,
    executableCode: true,
    codeExecutionResult: true,
    toolCall: true,
    toolResponse: true,
    audioTranscription: true,
    thought: true,
    thoughtSignature: true,
    videoMetadata: true,
    mediaResolution: true,
    mediaProcessing: true,
    speechMetadata: true,
    partMetadata: true,
  } satisfies Names<Part>,
  "content.parts[].inlineData": { mimeType: true, data: true, displayName: true } satisfies Names<Blob>,
  "content.parts[].fileData": { fileUri: true, mimeType: true, displayName: true } satisfies Names<FileData>,
  "content.parts[].functionCall": { id: true, name: true, args: true } satisfies Names<
    Omit<FunctionCall, "partialArgs" | "willContinue">
  >,
  "content.parts[].functionResponse": {
    id: true,
    name: true,
    response: true,
    parts: true,
    willContinue: true,
    scheduling: true,
  } satisfies Names<FunctionResponse>,
  "content.parts[].videoMetadata": { startOffset: true, endOffset: true, fps: true } satisfies Names<VideoMetadata>,
  // The client has other parameters for these.
  count: { contents: true, generateContentRequest: true },
  batch: { requests: true },
  embedding: {
    model: true,
    content: true,
    taskType: true,
    title: true,
    outputDimensionality: true,
  } satisfies Names<
    Omit<
      EmbedContentConfig,
      "httpOptions" | "abortSignal" | "mimeType" | "autoTruncate" | "documentOcr" | "audioTrackExtraction"
    > & { model: string; content: Content }
  >,
  "embedding.content": { role: true, parts: true } satisfies Names<Content>,
  "embedding.content.parts[]": { text: true } satisfies Names<Pick<Part, "text">>,
};

/** The same objects are at several places. */
function kindOf(place: string): string {
  return place
    .replace(/^(?:generate|count\.generateContentRequest)/u, "request")
    .replace(/^(?:request|count)\.(?:contents\[\]|systemInstruction)/u, "content")
    .replace(/^(?:embed|batch\.requests\[\])/u, "embedding");
}

describe("the fields that the simulator knows", () => {
  it.each(Object.entries(FIELDS))("of %s are those of the official client", (place, fields) => {
    expect(fields.split(" ").toSorted()).toEqual(Object.keys(OF_CLIENT[kindOf(place)] ?? {}).toSorted());
  });

  it("are in all the places that the client's types have", () => {
    expect(new Set(Object.keys(FIELDS).map(kindOf))).toEqual(new Set(Object.keys(OF_CLIENT)));
  });

  it("of a schema are those of the official client", () => {
    const keywords: Names<Schema> = {
      type: true,
      format: true,
      title: true,
      description: true,
      nullable: true,
      enum: true,
      items: true,
      minItems: true,
      maxItems: true,
      minProperties: true,
      maxProperties: true,
      properties: true,
      required: true,
      propertyOrdering: true,
      anyOf: true,
      minimum: true,
      maximum: true,
      minLength: true,
      maxLength: true,
      pattern: true,
      default: true,
      example: true,
    };
    expect(SCHEMA_KEYWORDS.split(" ").toSorted()).toEqual(Object.keys(keywords).toSorted());
  });
});
