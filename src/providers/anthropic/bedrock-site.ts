import { toBedrockFailure, toCountPath, toModelPath } from "../wire/bedrock.ts";
import { EVENT_STREAM, type EventStreamMessage } from "../wire/event-stream.ts";
import { isObject, type Json, object, parsed, string } from "../wire/json.ts";
import type { Framing } from "../wire/response.ts";
import type { SseEvent } from "../wire/sse.ts";
import type { AnthropicSite } from "./site.ts";

/** `anthropic_version` of every body at Bedrock. */
const VERSION = "bedrock-2023-05-31";

/**
 * Betas that Bedrock documents for the Messages API, and undocumented ones that it accepts. It refuses a request with any other as an
 * "invalid beta flag" (anthropics/claude-code#49370, router-for-me/CLIProxyAPI#4750; list: BerriAI/litellm#19877, read in November 2026).
 */
const BETAS: ReadonlySet<string> = new Set([
  "claude-code-20250219",
  "computer-use-2024-10-22",
  "computer-use-2025-01-24",
  "context-1m-2025-08-07",
  "context-management-2025-06-27",
  "dev-full-thinking-2025-05-14",
  "effort-2025-11-24",
  "interleaved-thinking-2025-05-14",
  "output-128k-2025-02-19",
  "structured-outputs-2025-12-15",
  "token-efficient-tools-2025-02-19",
  "tool-examples-2025-10-29",
  "tool-search-tool-2025-10-19",
]);

/**
 * Amazon Bedrock by InvokeModel: the path names the model and whether the answer is a stream, the body the version and the betas.
 * Sources: "Anthropic Claude Messages API" in the user guide of Bedrock, and `@anthropic-ai/bedrock-sdk` 1.1.3.
 */
export const BEDROCK: AnthropicSite = {
  headers: {},
  toPath: (model, streamed) => toModelPath(model, streamed ? "invoke-with-response-stream" : "invoke"),
  toCountPath,
  countField: "inputTokens",
  toBody(body, betas) {
    // Bedrock refuses metadata and the service tier in the body; it takes a tier as a header.
    const { model: _, stream: __, metadata: ___, service_tier: ____, thinking, ...fields } = body as Json;
    const taken = betas.filter((name) => BETAS.has(name));
    return {
      ...fields,
      thinking: isObject(thinking) ? withoutBinding(thinking) : undefined,
      anthropic_version: VERSION,
      ...(taken.length > 0 && { anthropic_beta: taken }),
    };
  },
  toCountBody(body) {
    const { model: _, ...fields } = body as Json;
    const { budget_tokens: budget } = object(fields["thinking"]);
    // A body of InvokeModel needs a token limit above the thinking budget.
    const max_tokens = (typeof budget === "number" ? budget : 0) + 1;
    const counted = JSON.stringify({ ...fields, anthropic_version: VERSION, max_tokens });
    return { input: { invokeModel: { body: Buffer.from(counted).toString("base64") } } };
  },
  hasBetaHeader: false,
  framing: {
    mediaType: EVENT_STREAM.mediaType,
    async createParser() {
      const parser = await EVENT_STREAM.createParser();
      return {
        get unfinishedBytes() {
          return parser.unfinishedBytes;
        },
        *push(bytes) {
          for (const message of parser.push(bytes)) yield toEvent(message);
        },
        *end() {
          for (const message of parser.end()) yield toEvent(message);
        },
      };
    },
  } satisfies Framing<SseEvent>,
  toFailure: toBedrockFailure,
};

/** Removes `block_binding`, which needs a beta that Bedrock does not document. */
function withoutBinding(thinking: Json): Json {
  return { ...thinking, block_binding: undefined };
}

/** Error types by the exceptions of a stream. Any other exception is an error of the service. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

/** The event of a Messages stream that a chunk wraps, or the event of an error for an exception. */
function toEvent({ kind, type, data }: EventStreamMessage): SseEvent {
  const json = object(parsed(data));
  if (kind === "event") return { event: "", data: Buffer.from(string(json["bytes"]), "base64").toString("utf8") };
  const error = {
    type: (Object.hasOwn(ERROR_TYPES, type) && ERROR_TYPES[type]) || "api_error",
    message: json["message"],
  };
  return { event: "error", data: JSON.stringify({ type: "error", error }) };
}
