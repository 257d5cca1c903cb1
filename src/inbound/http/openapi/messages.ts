import { z } from "zod";
import * as blocks from "../../../formats/anthropic/block-schema.ts";
import { customTool, message, messagesRequest, serverTool } from "../../../formats/anthropic/schema.ts";
import { attempt, parley } from "./answer-schemas.ts";
import { jsonBody, type JsonSchema, refTo, toJsonSchemas } from "./components.ts";
import { EVERYWHERE, headerParameters, headerRefs, LABEL_PARAMETERS, ROUTING } from "./errors.ts";

/* The Messages format in the OpenAPI document: its requests by the schemas that read them, its answers in outline. */

const text = (description: string) => z.string().describe(description);
const count = (description: string) => z.int().min(0).describe(description);

const usage = z
  .looseObject({
    input_tokens: count("Tokens of the request without those of the provider’s cache."),
    cache_creation_input_tokens: count("Tokens written to the provider’s cache."),
    cache_creation: z
      .looseObject({
        ephemeral_5m_input_tokens: count("For five minutes."),
        ephemeral_1h_input_tokens: count("For an hour."),
      })
      .describe("The same by lifetime, where the provider tells them apart.")
      .optional(),
    cache_read_input_tokens: count("Tokens read from the provider’s cache."),
    output_tokens: count("Tokens of the answer, reasoning included."),
    output_tokens_details: z
      .looseObject({ thinking_tokens: count("Tokens of reasoning.") })
      .describe("Of the output.")
      .optional(),
    server_tool_use: z
      .looseObject({ web_search_requests: count("Searches of the web.") })
      .describe("Calls of the provider’s own tools, which are billed apart.")
      .optional(),
  })
  .describe("Usage by the provider.");

const stopReason = z.enum([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
]);

const answer = z
  .looseObject({
    id: text("The completion’s ID: `msg_` and 24 letters or digits."),
    type: z.literal("message"),
    role: z.literal("assistant").describe("Always the model’s."),
    model: text("The model that answered; after a fallback not the one that was asked for."),
    content: z
      .array(blocks.block)
      .describe("The answer. Send it back as it came: the provider’s state is in its `thinking` blocks."),
    stop_reason: stopReason.describe("Why it ended."),
    stop_sequence: z.string().nullable().describe("The one that ended it, where the provider names it."),
    stop_details: z
      .looseObject({ explanation: z.string().nullable().describe("In words.") })
      .describe("Of a refusal.")
      .optional(),
    usage,
    parley: parley.optional(),
  })
  .describe("An answer.");

const event = z
  .looseObject({
    type: z
      .enum([
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
        "error",
      ])
      .describe("The same as the event’s name."),
    index: count("Which block.").optional(),
    parley: parley.optional(),
  })
  .describe("The data of an event.");

const error = z
  .looseObject({
    type: z.literal("error"),
    error: z
      .looseObject({
        type: z.enum([
          "invalid_request_error",
          "authentication_error",
          "permission_error",
          "not_found_error",
          "request_too_large",
          "rate_limit_error",
          "timeout_error",
          "api_error",
          "overloaded_error",
        ]),
        message: text("What is wrong, for people; begins with the field that is wrong."),
      })
      .describe("The failure."),
    request_id: text("The request’s ID."),
    parley: z
      .looseObject({ attempts: z.array(attempt).describe("The upstream models that were tried.") })
      .describe("Present when models were tried.")
      .optional(),
  })
  .describe("Why a request did not work.");

const tokenCount = z.looseObject({ input_tokens: count("Tokens of the request.") }).describe("The size of a request.");

/** Schemas by name. */
export function messagesSchemas(): Record<string, JsonSchema> {
  return toJsonSchemas({
    MessagesRequest: messagesRequest,
    MessageParam: message,
    MessageBlock: blocks.block,
    MessageTextBlock: blocks.textBlock,
    MessageImageBlock: blocks.imageBlock,
    MessageDocumentBlock: blocks.documentBlock,
    ToolUseBlock: blocks.toolUseBlock,
    ToolResultBlock: blocks.toolResultBlock,
    MessageThinkingBlock: blocks.thinkingBlock,
    RedactedThinkingBlock: blocks.redactedThinkingBlock,
    OtherBlock: blocks.otherBlock,
    CustomToolParam: customTool,
    ServerTool: serverTool,
    MessagesAnswer: answer,
    MessagesEvent: event,
    MessagesUsage: usage,
    MessagesError: error,
    MessagesTokenCount: tokenCount,
  });
}

const EXAMPLE = {
  model: "alpha-haiku-4.5",
  max_tokens: 1000,
  messages: [{ role: "user", content: "Hello!" }],
};

const KEY = "The key may come as `x-api-key`. Query strings and the header `anthropic-beta` have no effect.";

export function messagesPaths(): Record<string, object> {
  return {
    "/v1/messages": {
      post: {
        ...named("createMessage", "Create a message"),
        description: `Runs one completion. With \`stream\` the answer comes as server-sent events with names: \`message_start\`, the blocks one after the other, \`message_delta\` with the usage, and \`message_stop\` with \`parley\`. A failure after the first content is the last event, \`error\`. \`ping\` is sent after 15 seconds of silence. ${KEY}`,
        ...requestOf(),
        responses: {
          "200": {
            description: "The message, or the stream of its events.",
            headers: headerRefs([...EVERYWHERE, ...ROUTING]),
            content: {
              ...json("MessagesAnswer"),
              "text/event-stream": { schema: { anyOf: [refTo("MessagesEvent"), refTo("MessagesError")] } },
            },
          },
          default: FAILURE,
        },
      },
    },
    "/v1/messages/count_tokens": {
      post: {
        ...named("countMessageTokens", "Count the tokens of a request"),
        description: `The request is checked as for a message, and not run; it costs nothing. The provider counts where its dialect can; otherwise the gateway estimates, rather too high. ${KEY}`,
        ...requestOf(),
        responses: {
          "200": { description: "The count.", headers: headerRefs(EVERYWHERE), content: json("MessagesTokenCount") },
          default: FAILURE,
        },
      },
    },
  };
}

function named(operationId: string, summary: string) {
  return { operationId, summary, tags: ["Messages format"] };
}

function requestOf(): object {
  const deadlines = ["x-request-timeout-ms", "x-stainless-timeout"];
  return {
    parameters: headerParameters(["x-request-id", ...deadlines, ...LABEL_PARAMETERS]),
    requestBody: jsonBody("MessagesRequest", EXAMPLE),
  };
}

function json(schema: string): { readonly "application/json": object } {
  return { "application/json": { schema: refTo(schema) } };
}

const FAILURE = { description: "A failure.", content: json("MessagesError") };
