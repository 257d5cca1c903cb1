import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type ToolChoice, ToolMode } from "../../../gen/parley/v1/message_pb.js";
import type { TranslationLog } from "./translation.ts";

/** Whether the choice forces a tool call. */
export function forcesCall(toolChoice: ToolChoice | undefined): boolean {
  const choice = toolChoice?.choice;
  switch (choice?.case) {
    case "function":
    case "custom":
      return true;
    case "mode":
      return choice.value === ToolMode.REQUIRED;
    case "allowed":
      return choice.value.mode === ToolMode.REQUIRED;
    default:
      return false;
  }
}

/**
 * Logs the tool fields that are omitted because the request has no tools or the model takes none: the tools, a forced
 * call, and `parallel_tool_calls: false`. Fields without effect are not logged.
 */
export function omitToolFields({ tools, toolChoice, parallelToolCalls }: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(tools.length > 0, "tools");
  log.omitWhen(forcesCall(toolChoice), "tool_choice");
  log.omitWhen(tools.length > 0 && parallelToolCalls === false, "parallel_tool_calls");
}
