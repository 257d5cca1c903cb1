import { isEffort } from "../answer.ts";
import { decodeBase64, type ImageInput, measureImage, readImage, referToImage } from "../image-input.ts";
import type { Prompt, ToolChoice, Turn } from "../prompt.ts";
import type { ChatBody, ChatMessage } from "./schema.ts";

type Content = ChatMessage["content"];

function toText(content: Content): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function toImages(content: Content): ImageInput[] {
  if (typeof content === "string") return [];
  return (content ?? []).flatMap((part) => {
    if (part.type !== "image_url") return [];
    const data = readDataUrl(part.image_url.url);
    return [data ? readImage(data.bytes, data.mediaType) : referToImage()];
  });
}

function toTurn(message: ChatMessage): Turn {
  const text = toText(message.content);
  if (message.role === "developer") return { role: "system", text, images: [] };
  if (message.role !== "assistant") return { role: message.role, text, images: toImages(message.content) };
  const calls = (message.tool_calls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`);
  return { role: "assistant", text: [text, ...calls].filter(Boolean).join("\n"), images: [] };
}

function toToolChoice({ tool_choice: choice, parallel_tool_calls: isParallel }: ChatBody): ToolChoice {
  const parallel = isParallel !== false;
  if (choice === undefined || choice === null) return { mode: "auto", parallel };
  if (typeof choice === "string") return { mode: choice, parallel };
  if (choice.type === "function") return { mode: "required", names: [choice.function.name], parallel: false };
  const { mode, tools } = choice.allowed_tools;
  return { mode, names: tools.map((tool) => tool.function.name), parallel };
}

function toJson(format: ChatBody["response_format"]): Prompt["json"] {
  if (!format || format.type === "text") return undefined;
  return format.type === "json_schema" ? { schema: format.json_schema.schema ?? undefined } : {};
}

/** Returns the reasoning of an effort. Readable, as with most servers of this dialect; none without an effort. */
function toReasoning(effort: ChatBody["reasoning_effort"]): Prompt["reasoning"] {
  return effort && isEffort(effort) ? { effort, shown: true } : undefined;
}

/** Converts a chat completion request to a prompt. */
export function toPrompt(body: ChatBody): Prompt {
  return {
    model: body.model,
    turns: body.messages.map(toTurn),
    tools: (body.tools ?? []).map((tool) => ({ name: tool.function.name, parameters: tool.function.parameters })),
    toolChoice: toToolChoice(body),
    json: toJson(body.response_format),
    reasoning: toReasoning(body.reasoning_effort),
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    stop: typeof body.stop === "string" ? [body.stop] : (body.stop ?? []),
    seed: body.seed ?? undefined,
  };
}

/** Returns the image in a `data:` URL; undefined for anything else. */
export function readDataUrl(url: string): { mediaType: string; bytes: Buffer } | undefined {
  const comma = url.indexOf(",");
  const [, mediaType] = /^data:([^;,]+)(?:;[^;,]+)*;base64$/iu.exec(url.slice(0, comma)) ?? [];
  const bytes = mediaType === undefined ? undefined : decodeBase64(url.slice(comma + 1));
  if (mediaType === undefined || !bytes || !measureImage(bytes)) return undefined;
  return { mediaType, bytes };
}
