import { decodeBase64, readImage, referToImage, type ImageInput } from "../image-input.ts";
import type { Prompt, ToolChoice, Turn } from "../prompt.ts";
import type { Block, MessageBody, MessagesBody } from "./schema.ts";
import { toReasoning } from "./thinking.ts";

type ImageBlock = Extract<Block, { type: "image" }>;
type ToolResultBlock = Extract<Block, { type: "tool_result" }>;

function toImage({ source }: ImageBlock): ImageInput {
  if (source.type !== "base64") return referToImage();
  return readImage(decodeBase64(source.data) ?? Buffer.alloc(0), source.media_type);
}

function toText(block: Block): string[] {
  switch (block.type) {
    case "text":
      return [block.text];
    case "tool_use":
      return [`${block.name} ${JSON.stringify(block.input)}`];
    case "thinking":
      return [block.thinking];
    case "document":
    case "image":
    case "redacted_thinking":
    case "tool_result":
    default:
      return [];
  }
}

function toResultTurn({ content = "" }: ToolResultBlock): Turn {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  return {
    role: "tool",
    text: blocks.flatMap(toText).join("\n"),
    images: blocks.filter((block) => block.type === "image").map(toImage),
  };
}

function toTurns({ role, content }: MessageBody): Turn[] {
  if (typeof content === "string") return [{ role, text: content, images: [] }];
  const results = content.filter((block) => block.type === "tool_result").map(toResultTurn);
  const rest = content.filter((block) => block.type !== "tool_result");
  if (rest.length === 0) return results;
  const images = rest.filter((block) => block.type === "image").map(toImage);
  return [...results, { role, text: rest.flatMap(toText).join("\n"), images }];
}

function toToolChoice(choice: MessagesBody["tool_choice"]): ToolChoice {
  if (choice === undefined) return { mode: "auto", parallel: true };
  if (choice.type === "none") return { mode: "none", parallel: true };
  const parallel = choice.disable_parallel_tool_use !== true;
  if (choice.type === "tool") return { mode: "required", names: [choice.name], parallel: false };
  return { mode: choice.type === "any" ? "required" : "auto", parallel };
}

function toSystemTurns(system: MessagesBody["system"]): Turn[] {
  const text = typeof system === "string" ? system : (system ?? []).map((block) => block.text).join("\n");
  return text === "" ? [] : [{ role: "system", text, images: [] }];
}

/** Converts a Messages request to a prompt. */
export function toPrompt(body: MessagesBody): Prompt {
  const format = body.output_config?.format;
  const prompt: Prompt = {
    model: body.model,
    turns: [...toSystemTurns(body.system), ...body.messages.flatMap(toTurns)],
    tools: (body.tools ?? []).map((tool) => ({ name: tool.name, parameters: tool.input_schema })),
    toolChoice: toToolChoice(body.tool_choice),
    json: format ? { schema: format.schema } : undefined,
    maxTokens: body.max_tokens,
    stop: body.stop_sequences ?? [],
  };
  return { ...prompt, reasoning: toReasoning(body, prompt) };
}
