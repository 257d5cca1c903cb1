import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type AllowedTools, type Tool, type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import { parsed } from "../wire/json.ts";
import { toNative } from "../wire/native.ts";
import { forcesCall, omitToolFields, readObject, toolModeWord, type TranslationLog } from "../wire/translation.ts";
import type { OpenAiRequest, OpenAiTool, OpenAiToolChoice, OpenAiToolName } from "./wire.ts";

/**
 * Converts tools and tool choice; nothing without tools, because servers refuse a choice or an empty list then. Throws
 * `invalid_request` for an invalid schema.
 */
export function toTools(
  request: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): Pick<OpenAiRequest, "tools" | "tool_choice" | "parallel_tool_calls"> {
  const { tools, toolChoice, parallelToolCalls } = request;
  if (tools.length === 0 || !capabilities.tools) {
    omitToolFields(request, log);
    return {};
  }
  const sent = tools
    .map((tool, index) => toTool(tool, { log, path: `tools[${index}]` }))
    .filter((tool) => tool !== undefined);
  if (sent.length === 0) return {};
  const forced = forcesCall(toolChoice) && !capabilities.forcedTools;
  log.omitWhen(forced, "tool_choice");
  return {
    tools: sent,
    tool_choice: forced ? "auto" : toToolChoice(toolChoice, tools),
    // True is the default, and many servers do not support the field.
    parallel_tool_calls: parallelToolCalls === false ? false : undefined,
  };
}

function toTool(
  { kind, cacheMark }: Tool,
  { log, path }: { log: TranslationLog; path: string },
): OpenAiTool | undefined {
  log.omitWhen(cacheMark !== undefined, `${path}.cache_mark`);
  switch (kind.case) {
    case "function": {
      const { name, description, parametersJson, strict } = kind.value;
      const parameters =
        parametersJson === "" ? undefined : readObject(parametersJson, `${path}.function.parameters_json`);
      return { type: "function", function: { name, description: description || undefined, parameters, strict } };
    }
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const format = formatJson === "" ? undefined : readObject(formatJson, `${path}.custom.format_json`);
      return { type: "custom", custom: { name, description: description || undefined, format } };
    }
    case "native":
      return toNative(kind.value, "openai", { log, field: path }) as OpenAiTool | undefined;
    case undefined:
      return undefined;
  }
}

function toToolChoice(toolChoice: ToolChoice | undefined, tools: readonly Tool[]): OpenAiToolChoice | undefined {
  const choice = toolChoice?.choice;
  switch (choice?.case) {
    case "mode":
      return toolModeWord(choice.value);
    case "function":
      return { type: "function", function: { name: choice.value } };
    case "custom":
      return { type: "custom", custom: { name: choice.value } };
    case "allowed":
      return toAllowed(choice.value, tools);
    case undefined:
      return undefined;
  }
}

function toAllowed({ mode, names }: AllowedTools, tools: readonly Tool[]): OpenAiToolChoice {
  const custom = new Set(tools.flatMap(({ kind }) => (kind.case === "custom" ? [kind.value.name] : [])));
  const toName = (name: string): OpenAiToolName =>
    custom.has(name) ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
  const allowedMode = mode === ToolMode.REQUIRED ? "required" : "auto";
  // Native tools have no name that the caller could list, so they stay allowed.
  const native = tools.flatMap(({ kind }) =>
    kind.case === "native" && kind.value.dialect === "openai" ? [parsed(kind.value.json) as OpenAiToolName] : [],
  );
  return { type: "allowed_tools", allowed_tools: { mode: allowedMode, tools: [...names.map(toName), ...native] } };
}
