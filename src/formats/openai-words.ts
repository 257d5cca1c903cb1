import { Verbosity } from "../../gen/parley/v1/completion_pb.js";
import { ImageDetail } from "../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../gen/parley/v1/tool_pb.js";

/* Enum values that OpenAI's formats share. */

export const VERBOSITIES = { low: Verbosity.LOW, medium: Verbosity.MEDIUM, high: Verbosity.HIGH } as const;

export const EFFORTS = {
  none: ReasoningEffort.NONE,
  minimal: ReasoningEffort.MINIMAL,
  low: ReasoningEffort.LOW,
  medium: ReasoningEffort.MEDIUM,
  high: ReasoningEffort.HIGH,
  xhigh: ReasoningEffort.XHIGH,
  max: ReasoningEffort.MAX,
} as const;

export const MODES = { none: ToolMode.NONE, auto: ToolMode.AUTO, required: ToolMode.REQUIRED } as const;

export const DETAILS = {
  auto: ImageDetail.AUTO,
  low: ImageDetail.LOW,
  high: ImageDetail.HIGH,
  original: ImageDetail.ORIGINAL,
} as const;
