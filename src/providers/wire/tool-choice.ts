import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type ToolChoice, ToolMode } from "../../../gen/parley/v1/message_pb.js";
import type { TranslationLog } from "./translation.ts";

/** Whether the choice makes the model call a tool. */
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
 * Notes what is lost when nothing of a request's tools is sent, because it has none or the model takes none: the tools
 * themselves, a call that was to be made, and the rule against several at once. What says nothing without tools is not
 * missed.
 */
export function omitToolFields({ tools, toolChoice, parallelToolCalls }: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(tools.length > 0, "tools");
  log.omitWhen(forcesCall(toolChoice), "tool_choice");
  log.omitWhen(tools.length > 0 && parallelToolCalls === false, "parallel_tool_calls");
}
