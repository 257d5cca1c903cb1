import type { BlockTurn } from "../wire/block-turns.ts";

/*
 * The request of Converse as far as we write it. Sources: its documentation and the AWS SDK 3.1164 (November 2026). Bytes are base64.
 */

export interface TextBlock {
  readonly text: string;
}

export type ImageFormat = "png" | "jpeg" | "gif" | "webp";

export interface ImageBlock {
  readonly image: { readonly format: ImageFormat; readonly source: { readonly bytes: string } };
}

export interface DocumentBlock {
  readonly document: {
    readonly format: string;
    readonly name: string;
    readonly source: { readonly bytes: string };
    readonly citations?: { readonly enabled: true } | undefined;
  };
}

export interface VideoBlock {
  readonly video: { readonly format: string; readonly source: { readonly bytes: string } };
}

export interface AudioBlock {
  readonly audio: { readonly format: string; readonly source: { readonly bytes: string } };
}

interface ToolUseBlock {
  readonly toolUse: {
    readonly toolUseId: string;
    readonly name: string;
    readonly input: Readonly<Record<string, unknown>>;
  };
}

export interface ToolResultBlock {
  readonly toolResult: {
    readonly toolUseId: string;
    readonly content: readonly UserBlock[];
    readonly status?: "error" | undefined;
  };
}

export interface ReasoningBlock {
  readonly reasoningContent:
    | { readonly reasoningText: { readonly text: string; readonly signature: string } }
    | { readonly redactedContent: string };
}

/** Marks the end of a prefix to cache: a separate block after the prefix. */
export interface CachePointBlock {
  readonly cachePoint: { readonly type: "default"; readonly ttl?: "5m" | "1h" | undefined };
}

/** Content of a user's turn, and, except recordings, of a tool's result. */
export type UserBlock = TextBlock | ImageBlock | DocumentBlock | VideoBlock | AudioBlock;

export type Block = UserBlock | ToolUseBlock | ToolResultBlock | ReasoningBlock;

/** One turn of the conversation. */
export type Turn = BlockTurn<Block>;

export interface ToolBlock {
  readonly toolSpec: {
    readonly name: string;
    readonly description?: string | undefined;
    readonly inputSchema: { readonly json: Readonly<Record<string, unknown>> };
    readonly strict?: true | undefined;
  };
}

/** Tool choice. The provider has no `none`. */
export type ToolChoice = { readonly any: object } | { readonly tool: { readonly name: string } };

/** Fields of models that Converse itself does not have. */
export interface ModelFields {
  readonly thinking?:
    | { readonly type: "enabled"; readonly budget_tokens: number }
    | { readonly type: "adaptive" | "disabled" }
    | undefined;
  readonly reasoning_effort?: string | undefined;
  readonly top_k?: number | undefined;
}

/** The body of `POST /model/{modelId}/converse`. */
export interface ConverseBody {
  readonly system?: readonly (TextBlock | CachePointBlock)[] | undefined;
  readonly messages: readonly { readonly role: Turn["role"]; readonly content: readonly (Block | CachePointBlock)[] }[];
  readonly inferenceConfig?:
    | {
        readonly maxTokens?: number | undefined;
        readonly temperature?: number | undefined;
        readonly topP?: number | undefined;
        readonly stopSequences?: readonly string[] | undefined;
      }
    | undefined;
  readonly toolConfig?:
    | { readonly tools: readonly (ToolBlock | CachePointBlock)[]; readonly toolChoice?: ToolChoice | undefined }
    | undefined;
  readonly outputConfig?:
    | {
        readonly textFormat?:
          | {
              readonly type: "json_schema";
              readonly structure: {
                readonly jsonSchema: { readonly schema: string; readonly name?: string | undefined };
              };
            }
          | undefined;
        readonly effort?: string | undefined;
      }
    | undefined;
  readonly additionalModelRequestFields?: ModelFields | undefined;
  readonly additionalModelResponseFieldPaths?: readonly string[] | undefined;
  readonly serviceTier?: { readonly type: string } | undefined;
}
