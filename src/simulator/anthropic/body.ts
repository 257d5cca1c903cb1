import type { CustomTool, MessagesRequest } from "../../formats/anthropic/schema.ts";
import type { KnownBlock } from "../../formats/anthropic/block-schema.ts";

/* The body of a request, whose shape the format has checked. */

export type Block = KnownBlock;

export interface MessageBody {
  readonly role: "user" | "assistant" | "system";
  readonly content: string | readonly Block[];
}

type Read =
  | "model"
  | "system"
  | "max_tokens"
  | "stop_sequences"
  | "temperature"
  | "top_p"
  | "top_k"
  | "thinking"
  | "output_config"
  | "tool_choice"
  | "service_tier"
  | "cache_control";

export interface MessagesBody extends Pick<MessagesRequest, Read> {
  readonly messages: readonly MessageBody[];
  readonly tools?: readonly CustomTool[] | null | undefined;
}

/** The fields of a request, and of the objects in it that have no others. The format reports those of blocks. */
export const FIELDS = {
  messages:
    "model messages max_tokens system stop_sequences stream temperature top_p top_k thinking output_config tools tool_choice metadata service_tier cache_control speed inference_geo container diagnostics workspace_id user_profile_id context_management",
  "messages.cache_control": "type ttl",
  "messages.messages[]": "role content",
  "messages.metadata": "user_id",
  "messages.output_config": "effort format",
  "messages.output_config.format": "type schema",
  "messages.thinking": "type budget_tokens display block_binding",
  "messages.thinking.block_binding": "prefix_mismatch_behavior",
  "messages.tool_choice": "type name disable_parallel_tool_use",
  "messages.tools[]":
    "type name description input_schema strict cache_control defer_loading eager_input_streaming input_examples allowed_callers",
} as const;
