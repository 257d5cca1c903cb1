import { type Tool, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import { NO_ARGUMENTS, toFunction } from "../wire/block-request.ts";
import { calledTools } from "../wire/block-turns.ts";
import { forcesCall, omitToolFields } from "../wire/translation.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { KINDS } from "./turns.ts";
import type { ToolBlock, ToolChoice, Turn } from "./wire.ts";

/** The tools of a request and their choice; no tools without `toolConfig`. */
export interface ToolFields {
  readonly tools: readonly ToolBlock[];
  readonly toolChoice?: ToolChoice | undefined;
}

/**
 * Maps tools and tool choice. The provider has no tool choice `none`: for it the tools are left out, unless the conversation has
 * calls, for which the provider needs them. Throws `invalid_request` for custom tools and invalid schemas.
 */
export function toTools(context: TranslationContext, turns: readonly Turn[]): ToolFields {
  const { request, model, log } = context;
  if (request.tools.length === 0 || !model.capabilities.tools) {
    omitToolFields(request, log);
    return toHistoricTools(turns);
  }
  const choice = request.toolChoice?.choice;
  if (choice?.case === "custom") throw invalidField("tool_choice", "this model does not take custom tools");
  const allowed = choice?.case === "allowed" ? new Set(choice.value.names) : undefined;
  const tools = request.tools.flatMap((tool, index) => {
    const block = toToolBlock(context, tool, `tools[${index}]`);
    return block === undefined || allowed?.has(block.toolSpec.name) === false ? [] : [block];
  });
  log.omitWhen(request.parallelToolCalls === false, "parallel_tool_calls");
  if (tools.length === 0) return toHistoricTools(turns);
  if (choice?.case !== "mode" || choice.value !== ToolMode.NONE) return { tools, toolChoice: toChoice(context) };
  if (calledTools(turns, KINDS).length === 0) return { tools: [] };
  log.omit("tool_choice");
  return { tools };
}

/** The provider refuses a conversation with calls but no tools, so the called tools are declared. */
function toHistoricTools(turns: readonly Turn[]): ToolFields {
  const tools = calledTools(turns, KINDS).map((name) => ({ toolSpec: { name, inputSchema: { json: NO_ARGUMENTS } } }));
  return { tools };
}

/** Undefined for a tool that is left out. */
function toToolBlock(context: TranslationContext, { kind, cacheMark }: Tool, field: string): ToolBlock | undefined {
  if (kind.case === undefined) return undefined;
  if (kind.case === "native") {
    context.log.omit(field);
    return undefined;
  }
  if (kind.case !== "function") throw invalidField(field, "this model only takes tools of type function");
  const { schema, ...more } = toFunction(context, kind.value, field);
  const block: ToolBlock = { toolSpec: { ...more, inputSchema: { json: schema } } };
  context.marks.put(block, cacheMark, field);
  return block;
}

function toChoice({ request: { toolChoice }, model, log }: TranslationContext): ToolChoice | undefined {
  if (!forcesCall(toolChoice)) return undefined;
  if (!model.capabilities.forcedTools) {
    log.omit("tool_choice");
    return undefined;
  }
  const choice = toolChoice?.choice;
  return choice?.case === "function" ? { tool: { name: choice.value } } : { any: {} };
}
