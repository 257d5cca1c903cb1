import { decodeBytes, type ImageInput, readImage, referToImage } from "../image-input.ts";
import type { PictureOrder, Prompt, ToolChoice, Turn } from "../prompt.ts";
import type { Content, ContentPart, GenerateBody, GenerationConfig } from "./schema.ts";
import { toReasoning } from "./thinking.ts";

/** Fields with user-defined content, whose names are not converted. */
const OPAQUE = new Set([
  "args",
  "response",
  "parametersJsonSchema",
  "responseJsonSchema",
  "parameters",
  "responseSchema",
  "labels",
]);

/** Converts `system_instruction` to `systemInstruction`. */
function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}

/** Converts `systemInstruction` to `system_instruction`, the spelling in the API's error messages. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

/** Converts all names to camel case, because the API accepts both spellings. */
export function normaliseNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normaliseNames);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const camel = toCamelCase(name);
      return [camel, OPAQUE.has(camel) ? inner : normaliseNames(inner)];
    }),
  );
}

function toImages({ inlineData, fileData }: ContentPart): ImageInput[] {
  if (inlineData) return [readImage(decodeBytes(inlineData.data) ?? Buffer.alloc(0), inlineData.mimeType)];
  return fileData ? [referToImage(fileData.mimeType)] : [];
}

function toText(part: ContentPart): string[] {
  if (part.text !== undefined) return [part.text];
  return part.functionCall ? [`${part.functionCall.name} ${JSON.stringify(part.functionCall.args ?? {})}`] : [];
}

function toTurns({ role, parts = [] }: Content): Turn[] {
  const results = parts
    .filter((part) => part.functionResponse !== undefined)
    .map((part): Turn => {
      // The API's guide recommends `output` for plain text.
      const { response = {} } = part.functionResponse ?? {};
      const text = typeof response["output"] === "string" ? response["output"] : JSON.stringify(response);
      return { role: "tool", text, images: [] };
    });
  const rest = parts.filter((part) => part.functionResponse === undefined);
  if (rest.length === 0) return results;
  const turn = { text: rest.flatMap(toText).join("\n"), images: rest.flatMap(toImages) };
  return [...results, { role: role === "model" ? "assistant" : "user", ...turn }];
}

function toToolChoice(config: NonNullable<GenerateBody["toolConfig"]>["functionCallingConfig"]): ToolChoice {
  const names = config?.allowedFunctionNames;
  if (config?.mode === "NONE") return { mode: "none", parallel: true };
  return { mode: config?.mode === "ANY" ? "required" : "auto", names, parallel: true };
}

function toPicture({ responseModalities = [], imageConfig }: GenerationConfig): PictureOrder | undefined {
  if (!responseModalities.includes("IMAGE")) return undefined;
  const { aspectRatio = "1:1", imageSize = "1K" } = imageConfig ?? {};
  return { aspectRatio, size: imageSize, caption: responseModalities.includes("TEXT") };
}

/** Converts a `generateContent` request to a prompt. */
export function toPrompt(body: GenerateBody, model: string): Prompt {
  const config = body.generationConfig ?? {};
  const system = (body.systemInstruction?.parts ?? []).flatMap(toText).join("\n");
  const systemTurns: Turn[] = system === "" ? [] : [{ role: "system", text: system, images: [] }];
  return {
    model,
    turns: [...systemTurns, ...body.contents.flatMap(toTurns)],
    tools: body.tools
      .flatMap((tool) => tool.functionDeclarations ?? [])
      .map((tool) => ({ name: tool.name, parameters: tool.parametersJsonSchema ?? tool.parameters })),
    toolChoice: toToolChoice(body.toolConfig?.functionCallingConfig),
    json:
      config.responseMimeType === "application/json"
        ? { schema: config.responseJsonSchema ?? config.responseSchema }
        : undefined,
    picture: toPicture(config),
    reasoning: toReasoning(config),
    maxTokens: config.maxOutputTokens,
    stop: config.stopSequences ?? [],
    seed: config.seed,
  };
}
