import type { Dialect } from "../../src/config/dialects.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SIGNATURE = { google: { thought_signature: "c2lnbmVk" } };

/** An answer that ends with this word, and with a call if asked for. */
type Ending = (word: string, calls: object[]) => object;

const message = (content: object[], stop_reason: string): object => ({
  type: "message",
  role: "assistant",
  content,
  stop_reason,
  stop_details: stop_reason === "refusal" ? { type: "refusal", explanation: "No." } : null,
  usage: {
    input_tokens: 3,
    output_tokens: 5,
    cache_read_input_tokens: 1,
    cache_creation_input_tokens: 1,
    output_tokens_details: { thinking_tokens: 1 },
  },
});

const SEARCH_RESULT = {
  type: "web_search_result_location",
  url: "https://example.com",
  title: "a",
  cited_text: "b",
  encrypted_index: "c",
};

const byModality = [
  { modality: "AUDIO", tokenCount: 1 },
  { modality: "IMAGE", tokenCount: 1 },
];
/** An answer with a search result as its source. */
const grounded = (text: string): object => ({
  candidates: [
    {
      content: { role: "model", parts: [{ text }] },
      finishReason: "STOP",
      groundingMetadata: {
        groundingChunks: [{ web: { uri: "https://example.com", title: "a" } }],
        groundingSupports: [{ segment: { endIndex: text.length, text }, groundingChunkIndices: [0] }],
      },
    },
  ],
});
const candidate = (parts: object[], finishReason: string): object => ({
  candidates: [
    {
      index: 0,
      content: { role: "model", parts },
      finishReason,
      logprobsResult: { chosenCandidates: [{ token: "Hi", logProbability: -0.1 }], topCandidates: [] },
    },
  ],
  usageMetadata: {
    promptTokenCount: 3,
    candidatesTokenCount: 4,
    thoughtsTokenCount: 1,
    cachedContentTokenCount: 1,
    totalTokenCount: 8,
    promptTokensDetails: byModality,
    candidatesTokensDetails: byModality,
  },
});

const WEB_CITATION = { title: "a", sourceContent: [{ text: "b" }], location: { web: { url: "https://example.com" } } };

const converse = (content: object[], stopReason: string): object => ({
  output: { message: { role: "assistant", content } },
  stopReason,
  usage: { inputTokens: 1, outputTokens: 5, totalTokens: 6, cacheReadInputTokens: 1, cacheWriteInputTokens: 1 },
});

const completion = (said: object, finish_reason: string): object => ({
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", ...said },
      logprobs: { content: [{ token: "Hi", logprob: -0.1, bytes: null, top_logprobs: [] }] },
      finish_reason,
    },
  ],
  usage: {
    prompt_tokens: 3,
    completion_tokens: 5,
    total_tokens: 8,
    prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1, audio_tokens: 1, image_tokens: 1 },
    completion_tokens_details: {
      reasoning_tokens: 1,
      audio_tokens: 1,
      image_tokens: 1,
      accepted_prediction_tokens: 1,
      rejected_prediction_tokens: 1,
    },
  },
});

const response = (output: object[], status: string, reason?: string): object => ({
  object: "response",
  status,
  error: null,
  incomplete_details: reason === undefined ? null : { reason },
  output,
  usage: {
    input_tokens: 3,
    input_tokens_details: { cached_tokens: 1, cache_write_tokens: 1 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 1 },
    total_tokens: 8,
  },
});

const outputText = (content: object): object => ({
  id: "msg_1",
  type: "message",
  status: "completed",
  role: "assistant",
  content: [{ type: "output_text", text: "Hi", annotations: [], ...content }],
});

/** Answers of each dialect that together hold everything its providers say. */
export const ANSWER_SAMPLES: Readonly<Record<Dialect, readonly object[]>> = {
  anthropic: [
    message(
      [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "text", text: "Hi" },
        { type: "tool_use", id: "toolu_1", name: "f", input: {} },
      ],
      "tool_use",
    ),
    message([{ type: "text", text: "Hi" }], "refusal"),
    message([{ type: "text", text: "Hi", citations: [SEARCH_RESULT] }], "end_turn"),
  ],
  "bedrock-converse": [
    converse(
      [
        { reasoningContent: { reasoningText: { text: "Hm.", signature: "c2ln" } } },
        { citationsContent: { content: [{ text: "Hi" }], citations: [WEB_CITATION] } },
        { toolUse: { toolUseId: "tooluse_1", name: "f", input: {} } },
      ],
      "tool_use",
    ),
  ],
  gemini: [
    candidate(
      [
        { text: "Hm.", thought: true },
        { text: "Hi", thoughtSignature: "c2ln" },
        { inlineData: { mimeType: "image/png", data: PNG }, thoughtSignature: "c2ln" },
        { functionCall: { name: "f", args: {} }, thoughtSignature: "c2ln" },
      ],
      "STOP",
    ),
    { promptFeedback: { blockReason: "SAFETY" } },
    grounded("Hi"),
  ],
  openai: [
    completion(
      {
        content: "Hi",
        reasoning_content: "Hm.",
        images: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` }, extra_content: SIGNATURE }],
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "f", arguments: "{}" }, extra_content: SIGNATURE },
          { id: "call_2", type: "custom", custom: { name: "c", input: "x" } },
        ],
        extra_content: SIGNATURE,
        annotations: [
          {
            type: "url_citation",
            url_citation: { url: "https://example.com", title: "a", start_index: 0, end_index: 1 },
          },
        ],
        audio: { id: "audio_1", data: "AAAA", transcript: "Hi", expires_at: 1 },
      },
      "tool_calls",
    ),
    completion({ content: null, refusal: "No." }, "stop"),
  ],
  "openai-responses": [
    response(
      [
        {
          id: "rs_1",
          type: "reasoning",
          summary: [{ type: "summary_text", text: "Hm." }],
          encrypted_content: "gAAAAABo",
        },
        {
          ...outputText({
            annotations: [
              { type: "url_citation", url: "https://example.com", title: "a", start_index: 0, end_index: 1 },
            ],
            logprobs: [{ token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [] }],
          }),
          phase: "commentary",
        },
        { id: "ig_1", type: "image_generation_call", status: "completed", result: PNG, output_format: "png" },
        { id: "fc_1", type: "function_call", status: "completed", call_id: "call_1", name: "f", arguments: "{}" },
        { id: "ctc_1", type: "custom_tool_call", call_id: "call_2", name: "c", input: "x" },
      ],
      "completed",
    ),
    response([{ ...outputText({}), content: [{ type: "refusal", refusal: "No." }] }], "completed"),
  ],
};

const CALLS: Readonly<Record<Dialect, object>> = {
  anthropic: { type: "tool_use", id: "toolu_1", name: "f", input: {} },
  "bedrock-converse": { toolUse: { toolUseId: "tooluse_1", name: "f", input: {} } },
  gemini: { functionCall: { name: "f", args: {} } },
  openai: { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } },
  "openai-responses": { id: "fc_1", type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
};

const ENDINGS: Readonly<Record<Dialect, Ending>> = {
  anthropic: (word, calls) => message([{ type: "text", text: "Hi" }, ...calls], word),
  "bedrock-converse": (word, calls) => converse([{ text: "Hi" }, ...calls], word),
  gemini: (word, calls) => candidate([{ text: "Hi" }, ...calls], word),
  openai: (word, calls) => completion({ content: "Hi", tool_calls: calls }, word),
  "openai-responses": (word, calls) =>
    word === "completed"
      ? response([outputText({}), ...calls], word)
      : response([outputText({}), ...calls], "incomplete", word),
};

/** Words that a provider only says of an answer with calls. */
const CALLED: ReadonlySet<string> = new Set(["tool_use", "tool_calls"]);

/** An answer of the dialect that ends as the first cell of a row says: "`STOP` with a call". */
export function answerEnding(dialect: Dialect, { word, called }: { word: string; called: boolean }): object {
  return ENDINGS[dialect](word, called || CALLED.has(word) ? [CALLS[dialect]] : []);
}
