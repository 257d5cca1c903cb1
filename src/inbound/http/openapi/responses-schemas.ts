import { z } from "zod";
import * as items from "../../../formats/openai-responses/item-schema.ts";
import { responsesRequest } from "../../../formats/openai-responses/schema.ts";
import * as tools from "../../../formats/openai-responses/tool-schema.ts";
import { attempt, parley } from "./answer-schemas.ts";

/* Schemas of OpenAI's Responses API: the parser's of requests, and an outline of what `formats/openai-responses` writes. */

const text = (description: string) => z.string().describe(description);
const count = (description: string) => z.int().min(0).describe(description);

/** Schemas of requests by their names in the document. */
export const READ_RESPONSES = {
  ResponsesRequest: responsesRequest,
  ResponsesItem: items.item,
  ResponsesMessage: items.message,
  ResponsesText: items.inputText,
  ResponsesImage: items.inputImage,
  ResponsesFile: items.inputFile,
  ResponsesFunctionCall: items.functionCall,
  ResponsesFunctionCallOutput: items.functionCallOutput,
  ResponsesCustomToolCall: items.customToolCall,
  ResponsesCustomToolCallOutput: items.customToolCallOutput,
  ResponsesReasoning: items.reasoning,
  ResponsesImageGenerationCall: items.imageGenerationCall,
  ResponsesItemReference: items.itemReference,
  ResponsesTool: tools.tool,
  ResponsesFunctionTool: tools.functionTool,
  ResponsesCustomTool: tools.customTool,
  ResponsesNamespaceTool: tools.namespaceTool,
  ResponsesNamedTool: tools.namedTool,
} as const;

const outputItem = z
  .looseObject({
    id: text("The item’s ID, the same in every event."),
    type: text(
      "`message`, `reasoning`, `function_call`, `custom_tool_call`, `image_generation_call`, or that of another tool of the provider, such as `web_search_call`.",
    ),
    status: text(
      "`in_progress`, `completed`, `incomplete`, or a tool’s own word. Calls of custom tools have none.",
    ).optional(),
  })
  .describe("An item of the answer; it can be sent back as it is.");

const usage = z
  .object({
    input_tokens: count("Tokens of the request, cached ones included."),
    input_tokens_details: z
      .object({
        cached_tokens: count("Read from the provider’s cache."),
        cache_write_tokens: count("Written to the provider’s cache.").optional(),
      })
      .describe("What the request’s tokens were."),
    output_tokens: count("Tokens of the answer, reasoning included."),
    output_tokens_details: z
      .object({ reasoning_tokens: count("Of reasoning.") })
      .describe("What the answer’s tokens were."),
    total_tokens: count("Both together."),
  })
  .describe("Usage by the provider.");

const response = z
  .looseObject({
    id: text("The response’s ID: `resp_` and 24 letters or digits."),
    object: z.literal("response"),
    created_at: z.int().describe("When it was begun, in Unix seconds."),
    completed_at: z.int().nullable().optional().describe("When it was complete."),
    status: z.enum(["in_progress", "completed", "incomplete", "failed"]).describe("How it ended."),
    error: z
      .object({ code: text("`server_error`, `rate_limit_exceeded` or another word."), message: text("Why it failed.") })
      .nullable()
      .describe("Why a streamed response failed after its first content."),
    incomplete_details: z
      .object({ reason: text("`max_output_tokens` or `content_filter`.") })
      .nullable()
      .describe("Why it is not complete."),
    model: text("The model that answered; after a fallback not the one that was asked for."),
    output: z.array(outputItem).describe("The answer."),
    usage: usage.optional(),
    store: z.boolean().describe("Whether the response is stored. False unless the gateway stores responses."),
    parley: z
      .union([parley, z.object({ attempts: z.array(attempt) }).describe("Of a failed response.")])
      .optional()
      .describe("Of a failed response only the attempts."),
  })
  .describe("A response. Further fields repeat the request.");

/** Schemas of responses. */
export const WRITTEN_RESPONSES = {
  Response: response,
  ResponseItem: outputItem,
  ResponseEvent: z
    .looseObject({
      type: text("The event, such as `response.output_text.delta`."),
      sequence_number: count("Its number in the stream."),
      response: response.optional().describe("Of the first and the last event: the response."),
    })
    .describe("An event of a streamed response."),
  ResponseDeleted: z
    .object({
      id: text("The response’s ID."),
      object: z.literal("response"),
      deleted: z.literal(true).describe("It is deleted."),
    })
    .describe("A deleted response."),
  ResponseItemList: z
    .object({
      object: z.literal("list"),
      data: z
        .array(
          z
            .looseObject({ id: text("The item’s ID."), type: text("Its type, such as `message`.") })
            .describe("An item in the form of the request."),
        )
        .describe("The items."),
      first_id: text("The ID of the first item.").nullable(),
      last_id: text("The ID of the last item.").nullable(),
      has_more: z.boolean().describe("Whether there are more items after the last one."),
    })
    .describe("Items of a conversation."),
  ResponseInputTokens: z
    .object({ object: z.literal("response.input_tokens"), input_tokens: count("Tokens of the request.") })
    .describe("The size of a request."),
} as const;
