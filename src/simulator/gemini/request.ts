import { decodeBase64, type ImageInput, readImage, referToImage } from "../image-input.ts";
import type { PictureOrder, Prompt, ToolChoice, Turn } from "../prompt.ts";
import type { Content, ContentPart, GenerateBody, GenerationConfig } from "./schema.ts";
import { toReasoning } from "./thinking.ts";

/** Fields whose content is the caller's own: names inside them are left alone. */
const OPAQUE = new Set([
  "args",
  "response",
  "parametersJsonSchema",
  "responseJsonSchema",
  "parameters",
  "responseSchema",
  "labels",
]);

/** `system_instruction` as `systemInstruction`. */
function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/gu, (_, letter: string) => letter.toUpperCase());
}

/** `systemInstruction` as `system_instruction`: how the service's own messages spell a field. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

/** The body with camel-case names throughout: the service reads both spellings. */
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
  if (inlineData) return [readImage(decodeBase64(inlineData.data) ?? Buffer.alloc(0), inlineData.mimeType)];
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
      // Plain text travels as `output`, as the service's own guide advises.
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

/** What a generateContent request asks for. */
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
