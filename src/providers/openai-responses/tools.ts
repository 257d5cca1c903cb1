import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type AllowedTools, type Tool, type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import { parsed } from "../wire/json.ts";
import { toNative } from "../wire/native.ts";
import { forcesCall, omitToolFields, readObject, toolModeWord, type TranslationLog } from "../wire/translation.ts";
import { DIALECT } from "./parts.ts";
import type { ResponsesBody, ResponsesTool, ResponsesToolChoice, ToolName } from "./wire.ts";

/**
 * Converts tools and tool choice; nothing without tools, because servers refuse a choice or an empty list then. Throws
 * `invalid_request` for an invalid schema.
 */
export function toTools(
  request: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): Pick<ResponsesBody, "tools" | "tool_choice" | "parallel_tool_calls"> {
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
    // True is the default, and some servers do not support the field.
    parallel_tool_calls: parallelToolCalls === false ? false : undefined,
  };
}

function toTool(
  { kind, cacheMark }: Tool,
  { log, path }: { log: TranslationLog; path: string },
): ResponsesTool | undefined {
  log.omitWhen(cacheMark !== undefined, `${path}.cache_mark`);
  switch (kind.case) {
    case "function": {
      const { name, description, parametersJson, strict = false } = kind.value;
      const parameters = parametersJson === "" ? null : readObject(parametersJson, `${path}.function.parameters_json`);
      return { type: "function", name, description: description || undefined, parameters, strict };
    }
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const format = formatJson === "" ? undefined : toFlatFormat(readObject(formatJson, `${path}.custom.format_json`));
      return { type: "custom", name, description: description || undefined, format };
    }
    case "native":
      return toNative(kind.value, DIALECT, { log, field: path }) as ResponsesTool | undefined;
    case undefined:
      return undefined;
  }
}

/** Moves the syntax and definition of a grammar beside its type, as this API requires. Chat completions have them in an own object. */
function toFlatFormat(format: Readonly<Record<string, unknown>>): object {
  const { grammar, ...more } = format;
  return typeof grammar === "object" && grammar !== null ? { ...more, ...grammar } : format;
}

function toToolChoice(toolChoice: ToolChoice | undefined, tools: readonly Tool[]): ResponsesToolChoice | undefined {
  const choice = toolChoice?.choice;
  switch (choice?.case) {
    case "mode":
      return toolModeWord(choice.value);
    case "function":
    case "custom":
      return { type: choice.case, name: choice.value };
    case "allowed":
      return toAllowed(choice.value, tools);
    case undefined:
      return undefined;
  }
}

function toAllowed({ mode, names }: AllowedTools, tools: readonly Tool[]): ResponsesToolChoice {
  const custom = new Set(tools.flatMap(({ kind }) => (kind.case === "custom" ? [kind.value.name] : [])));
  const toName = (name: string): ToolName => ({ type: custom.has(name) ? "custom" : "function", name });
  // Native tools have no name that the caller could list, so they stay allowed.
  const native = tools.flatMap(({ kind }) =>
    kind.case === "native" && kind.value.dialect === DIALECT ? [parsed(kind.value.json) as object] : [],
  );
  const allowedMode = mode === ToolMode.REQUIRED ? "required" : "auto";
  return { type: "allowed_tools", mode: allowedMode, tools: [...names.map(toName), ...native] };
}
