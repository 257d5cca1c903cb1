import type { BlockTurn } from "../wire/block-turns.ts";
import type { ImageType } from "../wire/media.ts";

/*
 * The request in the provider's schema, as far as we write it. The provider refuses unknown fields, so a body may have no others.
 * Undefined fields are left out when the body is written.
 */

/** Marks the end of a prefix to cache. */
export interface CacheControl {
  readonly type: "ephemeral";
  readonly ttl?: "5m" | "1h";
}

/** A block or tool that can have a cache mark. */
export interface Markable {
  cache_control?: CacheControl | undefined;
}

export interface TextBlock extends Markable {
  readonly type: "text";
  text: string;
}

export interface ImageBlock extends Markable {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: ImageType; readonly data: string }
    | { readonly type: "url"; readonly url: string };
}

export interface DocumentBlock extends Markable {
  readonly type: "document";
  readonly source:
    | { readonly type: "base64"; readonly media_type: "application/pdf"; readonly data: string }
    | { readonly type: "text"; readonly media_type: "text/plain"; readonly data: string }
    | { readonly type: "url"; readonly url: string };
  readonly title?: string | undefined;
  readonly citations?: { readonly enabled: true } | undefined;
}

export interface ToolUseBlock extends Markable {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ToolResultBlock extends Markable {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content?: string | readonly ContentBlock[] | undefined;
  readonly is_error?: true | undefined;
}

export interface ThinkingBlock {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
}

export interface RedactedThinkingBlock {
  readonly type: "redacted_thinking";
  readonly data: string;
}

/** Content of a user's turn and of a tool result. */
export type ContentBlock = TextBlock | ImageBlock | DocumentBlock;

export type Block = ContentBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | RedactedThinkingBlock;

/** One turn of the conversation. */
export type Turn = BlockTurn<Block>;

export interface ToolDefinition extends Markable {
  readonly name: string;
  readonly description?: string | undefined;
  readonly input_schema: Readonly<Record<string, unknown>>;
  readonly strict?: true | undefined;
}

export type ToolChoice =
  | { readonly type: "auto" | "any"; readonly disable_parallel_tool_use?: true | undefined }
  | { readonly type: "tool"; readonly name: string; readonly disable_parallel_tool_use?: true | undefined }
  | { readonly type: "none" };

export type Thinking =
  | { readonly type: "disabled" }
  | { readonly type: "enabled"; readonly budget_tokens: number; readonly block_binding?: BlockBinding | undefined }
  | { readonly type: "adaptive"; readonly display: "summarized"; readonly block_binding?: BlockBinding | undefined };

/** How the provider treats returned reasoning whose conversation has changed since. */
interface BlockBinding {
  readonly prefix_mismatch_behavior: "drop_block";
}

/** The body of `POST /v1/messages`. */
export interface MessagesBody {
  readonly model: string;
  readonly max_tokens: number;
  readonly stream?: true | undefined;
  readonly system?: readonly TextBlock[] | undefined;
  readonly tools?: readonly ToolDefinition[] | undefined;
  readonly tool_choice?: ToolChoice | undefined;
  readonly thinking?: Thinking | undefined;
  readonly output_config?: { readonly effort?: string | undefined; readonly format?: object | undefined } | undefined;
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
  readonly top_k?: number | undefined;
  readonly stop_sequences?: readonly string[] | undefined;
  readonly metadata?: { readonly user_id: string } | undefined;
  readonly service_tier?: "auto" | "standard_only" | undefined;
  readonly messages: readonly Turn[];
}
