import { type Tool, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import { NO_ARGUMENTS, toFunction } from "../wire/block-request.ts";
import { calledTools } from "../wire/block-turns.ts";
import { toNative } from "../wire/native.ts";
import { forcesCall, omitToolFields } from "../wire/translation.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { KINDS } from "./turns.ts";
import type { ToolChoice, ToolDefinition, Turn } from "./wire.ts";

/** The tool fields of a request; both absent without tools. */
export interface ToolFields {
  readonly tools?: readonly ToolDefinition[];
  readonly tool_choice?: ToolChoice | undefined;
}

/**
 * Maps tools and tool choice. Throws `invalid_request` for custom tools and invalid schemas. Omits the tools for a model
 * that takes none, and turns a forced call into a free choice if the model does not support forcing; both are logged.
 */
export function toTools(context: TranslationContext, turns: readonly Turn[]): ToolFields {
  const { request, model, log } = context;
  if (request.tools.length === 0 || !model.capabilities.tools) {
    omitToolFields(request, log);
    return toHistoricTools(turns);
  }
  const allowed =
    request.toolChoice?.choice.case === "allowed" ? new Set(request.toolChoice.choice.value.names) : undefined;
  const tools = request.tools
    .map((tool, index) => ({ tool, definition: toDefinition(context, tool, `tools[${index}]`) }))
    .filter(({ tool: { kind } }) => kind.case !== "function" || (allowed?.has(kind.value.name) ?? true))
    .flatMap(({ definition }) => definition ?? []);
  if (tools.length === 0) return toHistoricTools(turns);
  return { tools, tool_choice: toChoice(context) };
}

/**
 * The provider refuses a conversation with calls but no tools, so the called tools are declared with tool choice `none`.
 */
function toHistoricTools(turns: readonly Turn[]): ToolFields {
  const names = calledTools(turns, KINDS);
  if (names.length === 0) return {};
  return { tools: names.map((name) => ({ name, input_schema: NO_ARGUMENTS })), tool_choice: { type: "none" } };
}

/** Undefined for a tool that is left out. A native tool has other fields than `ToolDefinition`. */
function toDefinition(context: TranslationContext, tool: Tool, field: string): ToolDefinition | undefined {
  if (tool.kind.case === undefined) return undefined;
  if (tool.kind.case === "native") {
    context.marks.noteNative(tool.kind.value);
    const native = toNative(tool.kind.value, "anthropic", { log: context.log, field }) as ToolDefinition | undefined;
    context.marks.put(native, tool.cacheMark, field);
    return native;
  }
  if (tool.kind.case !== "function") throw invalidField(field, "this model only takes tools of type function");
  const { schema, ...more } = toFunction(context, tool.kind.value, field);
  const definition: ToolDefinition = { ...more, input_schema: schema };
  context.marks.put(definition, tool.cacheMark, field);
  return definition;
}

function toChoice({ request, model, log }: TranslationContext): ToolChoice | undefined {
  const disable_parallel_tool_use = request.parallelToolCalls === false ? true : undefined;
  const choice = request.toolChoice?.choice;
  if (choice?.case === "custom") throw invalidField("tool_choice", "this model does not take custom tools");
  if (choice?.case === "mode" && choice.value === ToolMode.NONE) return { type: "none" };
  if (forcesCall(request.toolChoice)) {
    if (model.capabilities.forcedTools) {
      return choice?.case === "function"
        ? { type: "tool", name: choice.value, disable_parallel_tool_use }
        : { type: "any", disable_parallel_tool_use };
    }
    log.omit("tool_choice");
  }
  return disable_parallel_tool_use && { type: "auto", disable_parallel_tool_use };
}
