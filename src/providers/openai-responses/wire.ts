/*
 * Types of the sent requests: the used parts of a request of OpenAI's Responses API. Undefined fields are omitted in JSON.
 * Responses have no types: they are read field by field with `../wire/json.ts`. Source: the types of the official SDK.
 */

/** The body of `POST /responses`. */
export interface ResponsesBody {
  readonly model: string;
  readonly instructions?: string | undefined;
  readonly input: readonly InputItem[];
  readonly stream?: true | undefined;
  /** The service's default is true. */
  readonly store: boolean;
  readonly include?: readonly ("reasoning.encrypted_content" | "message.output_text.logprobs")[] | undefined;
  readonly max_output_tokens?: number | undefined;
  /** Calls of all tools that the service runs itself; it ignores further ones. */
  readonly max_tool_calls?: number | undefined;
  readonly temperature?: number | undefined;
  readonly top_p?: number | undefined;
  readonly top_logprobs?: number | undefined;
  readonly tools?: readonly ResponsesTool[] | undefined;
  readonly tool_choice?: ResponsesToolChoice | undefined;
  readonly parallel_tool_calls?: false | undefined;
  readonly text?: { readonly format?: TextFormat | undefined; readonly verbosity?: string | undefined } | undefined;
  readonly reasoning?: { readonly effort?: string | undefined; readonly summary?: "auto" | undefined } | undefined;
  readonly image_config?:
    | { readonly aspect_ratio?: string | undefined; readonly image_size?: string | undefined }
    | undefined;
  readonly user?: string | undefined;
  readonly safety_identifier?: string | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly service_tier?: string | undefined;
  readonly prompt_cache_key?: string | undefined;
  readonly moderation?: unknown;
  readonly prompt_cache_options?: unknown;
  readonly prompt_cache_retention?: unknown;
}

/** Content of messages of the user and the system, and of a tool's result. */
export type InputContent =
  | { readonly type: "input_text"; readonly text: string }
  | { readonly type: "input_image"; readonly image_url: string; readonly detail: string }
  | { readonly type: "input_audio"; readonly input_audio: { readonly data: string; readonly format: string } }
  | {
      readonly type: "input_file";
      readonly filename?: string | undefined;
      readonly file_data?: string | undefined;
      readonly file_id?: string | undefined;
      readonly file_url?: string | undefined;
    };

export interface InputMessage {
  readonly type: "message";
  readonly role: "user" | "system";
  readonly content: string | readonly InputContent[];
}

/** A message of the model. Sent without its ID: with one the service requires the reasoning before it, which may be lost. */
export interface AnswerMessage {
  readonly type: "message";
  readonly role: "assistant";
  readonly content:
    | string
    | readonly (
        | { readonly type: "output_text"; readonly text: string }
        | { readonly type: "refusal"; readonly refusal: string }
      )[];
  /** The provider's value for whether it came before calls or at the end. */
  readonly phase?: string | undefined;
}

/** An unchanged reasoning item, for the service that encrypted it. */
export interface ReasoningItem {
  readonly type: "reasoning";
  /** Absent from servers without IDs; some demand it. */
  readonly id?: string;
  readonly summary: readonly unknown[];
  readonly content?: readonly unknown[] | undefined;
  readonly encrypted_content: string;
}

export type InputItem =
  | InputMessage
  | AnswerMessage
  | ReasoningItem
  | { readonly type: "function_call"; readonly call_id: string; readonly name: string; readonly arguments: string }
  | { readonly type: "custom_tool_call"; readonly call_id: string; readonly name: string; readonly input: string }
  | {
      readonly type: "function_call_output" | "custom_tool_call_output";
      readonly call_id: string;
      readonly output: string | readonly InputContent[];
    }
  | {
      readonly type: "image_generation_call";
      readonly id: string;
      readonly status: "completed";
      readonly result: string;
    };

export type ResponsesTool =
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string | undefined;
      /** Null: the function takes no parameters. */
      readonly parameters: object | null;
      /** The service's default is true. */
      readonly strict: boolean;
    }
  | {
      readonly type: "custom";
      readonly name: string;
      readonly description?: string | undefined;
      readonly format?: object | undefined;
    }
  | { readonly type: "image_generation"; readonly partial_images?: number };

/** A reference to a tool by name. */
export interface ToolName {
  readonly type: "function" | "custom";
  readonly name: string;
}

export type ResponsesToolChoice =
  | "auto"
  | "none"
  | "required"
  | ToolName
  | { readonly type: "image_generation" }
  | { readonly type: "allowed_tools"; readonly mode: "auto" | "required"; readonly tools: readonly object[] };

export type TextFormat =
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      readonly description?: string | undefined;
      readonly schema: object;
      readonly strict?: boolean | undefined;
    };
