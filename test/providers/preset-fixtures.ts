import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { PresetName } from "../../src/config/presets.ts";
import type { FailureCode } from "../../src/core/failure.ts";

/** An error of a host. */
interface PresetError {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
  readonly code: FailureCode;
  readonly detail?: string;
}

/** A real answer's shape, with other values, and those of errors. */
export interface PresetFixture {
  /** Title and date of what documents the wire. */
  readonly source: string;
  readonly answer: object;
  readonly expected: {
    readonly text: string;
    readonly reasoning?: string;
    readonly citations?: readonly string[];
    readonly finish: FinishReason;
    readonly usage: Partial<Usage>;
  };
  readonly errors: readonly [PresetError, ...PresetError[]];
}

const { STOP, LENGTH } = FinishReason;

/** What every answer of OpenAI's dialect has. */
const completion = (more: {
  readonly model: string;
  readonly choice: object;
  readonly usage: object;
  readonly [field: string]: unknown;
}): object => {
  const { choice, ...rest } = more;
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_795_000_000,
    choices: [{ index: 0, ...choice }],
    ...rest,
  };
};
const says = (content: unknown, more: object = {}): object => ({ role: "assistant", content, ...more });

/** Counts of a text of 20 and 9 tokens. */
const COUNTED = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 };
const READ = { inputTokens: 20, outputTokens: 9, totalTokens: 29, unknownUnits: [] };

export const PRESET_FIXTURES: Readonly<Record<PresetName, PresetFixture>> = {
  anthropic: {
    source: "platform.claude.com, Messages and Errors, November 2026",
    answer: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-opus-4-5-20251101",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "text", text: "It is." },
      ],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: {
        input_tokens: 12,
        cache_creation_input_tokens: 3,
        cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 2 },
        cache_read_input_tokens: 5,
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 4 },
        server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
        service_tier: "standard",
        inference_geo: "global",
      },
    },
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: {
        ...READ,
        cachedInputTokens: 5,
        cacheWriteInputTokens: 3,
        cacheWriteHourInputTokens: 2,
        reasoningOutputTokens: 4,
        webSearches: 1,
      },
    },
    errors: [
      {
        status: 401,
        body: {
          type: "error",
          error: { type: "authentication_error", message: "invalid x-api-key" },
          request_id: "req_1",
        },
        code: "upstream_refused_us",
      },
      {
        status: 404,
        body: { type: "error", error: { type: "not_found_error", message: "model: none" }, request_id: "req_1" },
        code: "upstream_refused_us",
      },
      {
        status: 529,
        body: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
        code: "upstream_unavailable",
        detail: "upstream_overloaded",
      },
    ],
  },
  gemini: {
    source: "ai.google.dev, GenerateContentResponse and Troubleshooting, November 2026",
    answer: {
      candidates: [
        {
          content: {
            parts: [
              { text: "Hm.", thought: true },
              { text: "It is.", thoughtSignature: "c2ln" },
            ],
            role: "model",
          },
          finishReason: "STOP",
          index: 0,
          groundingMetadata: { webSearchQueries: ["a", "b"], searchEntryPoint: { renderedContent: "<div/>" } },
        },
      ],
      usageMetadata: {
        promptTokenCount: 20,
        candidatesTokenCount: 5,
        totalTokenCount: 29,
        cachedContentTokenCount: 5,
        promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }],
        cacheTokensDetails: [{ modality: "TEXT", tokenCount: 5 }],
        thoughtsTokenCount: 4,
        serviceTier: "standard",
      },
      modelVersion: "gemini-3-flash-preview",
      responseId: "r1",
    },
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4, webSearches: 2 },
    },
    errors: [
      {
        status: 400,
        body: {
          error: {
            code: 400,
            message: "API key not valid. Please pass a valid API key.",
            status: "INVALID_ARGUMENT",
            details: [
              {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                reason: "API_KEY_INVALID",
                domain: "googleapis.com",
              },
            ],
          },
        },
        code: "upstream_refused_us",
      },
      {
        status: 404,
        body: { error: { code: 404, message: "models/none is not found for API version v1beta", status: "NOT_FOUND" } },
        code: "upstream_refused_us",
      },
    ],
  },
  openai: {
    source: "OpenAI API reference, The chat completion object, and Error codes, November 2026",
    answer: completion({
      model: "gpt-5.1-2025-11-13",
      choice: { message: says("It is.", { refusal: null, annotations: [] }), logprobs: null, finish_reason: "stop" },
      usage: {
        ...COUNTED,
        prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 4,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
      service_tier: "default",
      system_fingerprint: null,
    }),
    expected: { text: "It is.", finish: STOP, usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4 } },
    errors: [
      {
        status: 401,
        body: {
          error: {
            message: "Incorrect API key provided: sk-1.",
            type: "invalid_request_error",
            param: null,
            code: "invalid_api_key",
          },
        },
        code: "upstream_refused_us",
      },
      {
        status: 429,
        body: {
          error: {
            message: "You exceeded your current quota.",
            type: "insufficient_quota",
            param: null,
            code: "insufficient_quota",
          },
        },
        code: "upstream_unavailable",
      },
      {
        status: 404,
        body: {
          error: {
            message: "The model `none` does not exist",
            type: "invalid_request_error",
            param: null,
            code: "model_not_found",
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  azure: {
    source: "Azure OpenAI REST API reference and Content filtering, November 2026; openclaude issue 273, April 2026",
    answer: completion({
      model: "gpt-4.1-2025-04-14",
      choice: {
        message: says("It is.", { refusal: null, annotations: [] }),
        finish_reason: "stop",
        content_filter_results: { hate: { filtered: false, severity: "safe" } },
      },
      usage: {
        ...COUNTED,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
      prompt_filter_results: [
        { prompt_index: 0, content_filter_results: { jailbreak: { filtered: false, detected: false } } },
      ],
    }),
    expected: { text: "It is.", finish: STOP, usage: READ },
    errors: [
      {
        status: 400,
        body: {
          error: {
            message: "The response was filtered due to the prompt triggering the content management policy.",
            type: null,
            param: "prompt",
            code: "content_filter",
            status: 400,
            innererror: { code: "ResponsibleAIPolicyViolation", content_filter_result: { hate: { filtered: true } } },
          },
        },
        code: "upstream_rejected",
      },
      {
        status: 404,
        body: {
          error: { code: "DeploymentNotFound", message: "The API deployment for this resource does not exist." },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  bedrock: {
    source: "Amazon Bedrock user guide, Anthropic Claude Messages API, and API reference, InvokeModel, November 2026",
    answer: {
      id: "msg_bdrk_1",
      type: "message",
      role: "assistant",
      model: "claude-sonnet-4-5-20250929",
      content: [{ type: "text", text: "It is." }],
      stop_reason: "max_tokens",
      stop_sequence: null,
      usage: { input_tokens: 15, cache_creation_input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 9 },
    },
    expected: { text: "It is.", finish: LENGTH, usage: { ...READ, cachedInputTokens: 5, cacheWriteInputTokens: 0 } },
    errors: [
      {
        status: 403,
        headers: { "x-amzn-errortype": "AccessDeniedException:http://internal.amazon.com/coral/" },
        body: { message: "You don't have access to the model with the specified model ID." },
        code: "upstream_refused_us",
      },
      {
        status: 429,
        headers: { "x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/coral/" },
        body: { message: "Too many tokens, please wait before trying again." },
        code: "upstream_rate_limited",
      },
    ],
  },
  vertex: {
    source: "Vertex AI, GenerateContentResponse and API errors, November 2026",
    answer: {
      candidates: [
        { content: { role: "model", parts: [{ text: "It is." }] }, finishReason: "MAX_TOKENS", avgLogprobs: -0.1 },
      ],
      usageMetadata: {
        promptTokenCount: 20,
        candidatesTokenCount: 9,
        totalTokenCount: 29,
        trafficType: "ON_DEMAND",
        promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }],
        candidatesTokensDetails: [{ modality: "TEXT", tokenCount: 9 }],
      },
      modelVersion: "gemini-2.5-flash",
      createTime: "2026-11-26T10:00:00.000000Z",
      responseId: "r1",
    },
    expected: { text: "It is.", finish: LENGTH, usage: READ },
    errors: [
      {
        status: 403,
        body: {
          error: {
            code: 403,
            message: "Permission 'aiplatform.endpoints.predict' denied on resource",
            status: "PERMISSION_DENIED",
            details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "IAM_PERMISSION_DENIED" }],
          },
        },
        code: "upstream_refused_us",
      },
      {
        status: 429,
        body: {
          error: { code: 429, message: "Resource exhausted. Please try again later.", status: "RESOURCE_EXHAUSTED" },
        },
        code: "upstream_rate_limited",
      },
    ],
  },
  openrouter: {
    source: "OpenRouter, API Reference Overview, Usage Accounting and Errors, November 2026",
    answer: completion({
      model: "anthropic/claude-sonnet-4.5",
      provider: "Anthropic",
      choice: {
        message: says("It is.", {
          refusal: null,
          reasoning: "Hm.",
          reasoning_details: [{ type: "reasoning.text", text: "Hm.", format: "anthropic-claude-v1", index: 0 }],
          annotations: [
            {
              type: "url_citation",
              url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 2 },
            },
          ],
        }),
        logprobs: null,
        finish_reason: "stop",
        native_finish_reason: "end_turn",
      },
      usage: {
        ...COUNTED,
        cost: 0.0042,
        is_byok: false,
        cost_details: { upstream_inference_cost: 0.0042 },
        prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 3, audio_tokens: 0, video_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 4, image_tokens: 0 },
        server_tool_use: { web_search_requests: 1 },
      },
    }),
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      citations: ["https://a.example"],
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, cacheWriteInputTokens: 3, reasoningOutputTokens: 4, webSearches: 1 },
    },
    errors: [
      {
        status: 401,
        body: { error: { message: "No auth credentials found", code: 401 } },
        code: "upstream_refused_us",
      },
      { status: 402, body: { error: { message: "Insufficient credits", code: 402 } }, code: "upstream_refused_us" },
      {
        status: 404,
        body: { error: { message: "No endpoints found that support tool use.", code: 404 }, user_id: "user_1" },
        code: "upstream_refused_us",
      },
      {
        status: 502,
        body: { error: { message: "Provider returned error", code: 502, metadata: { provider_name: "A", raw: "…" } } },
        code: "upstream_unavailable",
      },
    ],
  },
  groq: {
    source:
      "console.groq.com, API Reference and API Error Codes, November 2026; fixtures of vercel/ai, packages/groq, 2026",
    answer: completion({
      model: "qwen/qwen3-32b",
      choice: { message: says("It is.", { reasoning: "Hm." }), logprobs: null, finish_reason: "stop" },
      usage: {
        queue_time: 0.33,
        prompt_tokens: 20,
        prompt_time: 0.001,
        completion_tokens: 9,
        completion_time: 1.2,
        total_tokens: 29,
        total_time: 1.201,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 4 },
      },
      usage_breakdown: null,
      system_fingerprint: "fp_1",
      x_groq: { id: "req_1", seed: 7 },
      service_tier: "on_demand",
    }),
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4 },
    },
    errors: [
      {
        status: 401,
        body: { error: { message: "Invalid API Key", type: "invalid_request_error", code: "invalid_api_key" } },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: {
          error: {
            message: "json mode cannot be combined with tool/function calling",
            type: "invalid_request_error",
            param: "response_format",
          },
        },
        code: "upstream_rejected",
      },
      {
        status: 429,
        headers: { "retry-after": "2" },
        body: { error: { message: "Rate limit reached for model `a`", type: "tokens", code: "rate_limit_exceeded" } },
        code: "upstream_rate_limited",
      },
    ],
  },
  mistral: {
    source:
      "docs.mistral.ai, Chat Completion; fixtures of vercel/ai, packages/mistral, 2026; langchaingo issue 1233, April 2025",
    answer: completion({
      model: "magistral-medium-2507",
      choice: {
        finish_reason: "length",
        message: says(
          [
            { type: "thinking", thinking: [{ type: "text", text: "Hm." }] },
            { type: "text", text: "It is." },
          ],
          { tool_calls: null, prefix: false },
        ),
      },
      usage: {
        ...COUNTED,
        prompt_audio_seconds: null,
        request_count: 1,
        service_tier: "standard",
        num_cached_tokens: 5,
        prompt_tokens_details: { cached_tokens: 5, messages: [{ role: "user", total_tokens: 20, usage_count: 1 }] },
        prompt_token_details: { cached_tokens: 5 },
      },
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: LENGTH, usage: { ...READ, cachedInputTokens: 5 } },
    errors: [
      { status: 401, body: { detail: "Unauthorized" }, code: "upstream_refused_us" },
      {
        status: 400,
        body: {
          object: "error",
          message: "Invalid model: none",
          type: "invalid_model",
          param: null,
          code: "1500",
          raw_status_code: 400,
        },
        code: "upstream_refused_us",
      },
      {
        status: 422,
        body: {
          detail: [{ type: "extra_forbidden", loc: ["body", "seed"], msg: "Extra inputs are not permitted", input: 1 }],
        },
        code: "upstream_protocol",
      },
    ],
  },
  deepseek: {
    source: "api-docs.deepseek.com, Create Chat Completion and Error Codes, November 2026; fixtures of vercel/ai, 2026",
    answer: completion({
      model: "deepseek-v4-flash",
      choice: { message: says("It is.", { reasoning_content: "Hm." }), logprobs: null, finish_reason: "stop" },
      usage: {
        ...COUNTED,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: { reasoning_tokens: 4 },
        prompt_cache_hit_tokens: 5,
        prompt_cache_miss_tokens: 15,
      },
      system_fingerprint: "fp_1",
    }),
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4 },
    },
    errors: [
      {
        status: 402,
        body: {
          error: { message: "Insufficient Balance", type: "unknown_error", param: null, code: "invalid_request_error" },
        },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: {
          error: {
            message: "Model Not Exist",
            type: "invalid_request_error",
            param: null,
            code: "invalid_request_error",
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  xai: {
    source:
      "docs.x.ai, Chat and Cost Tracking, November 2026; fixtures of vercel/ai, packages/xai, 2026; continue issue 10778, February 2026",
    // Reasoning is beside the completion's tokens.
    answer: completion({
      model: "grok-4.3",
      choice: { message: says("It is.", { reasoning_content: "Hm.", refusal: null }), finish_reason: "stop" },
      usage: {
        prompt_tokens: 20,
        completion_tokens: 5,
        total_tokens: 29,
        prompt_tokens_details: { text_tokens: 20, audio_tokens: 0, image_tokens: 0, cached_tokens: 5 },
        completion_tokens_details: {
          reasoning_tokens: 4,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
        num_sources_used: 0,
        cost_in_usd_ticks: 4_121_500,
      },
      system_fingerprint: "fp_1",
      service_tier: "default",
    }),
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4 },
    },
    errors: [
      {
        status: 400,
        body: {
          code: "Client specified an invalid argument",
          error: "Incorrect API key provided: xa***ey. You can obtain an API key from https://console.x.ai.",
        },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: {
          code: "Client specified an invalid argument",
          error: "Invalid request content: Each message must have at least one content element.",
        },
        code: "upstream_rejected",
      },
    ],
  },
  together: {
    source: "docs.together.ai, Create Chat Completion and Error Codes, November 2026; LawGPT issue 4, August 2024",
    answer: completion({
      model: "meta-llama/Llama-3.3-70B-Instruct-Turbo",
      prompt: [],
      choice: { finish_reason: "eos", logprobs: null, seed: 7, message: says("It is.", { tool_calls: [] }) },
      usage: { ...COUNTED, cached_tokens: 5 },
    }),
    expected: { text: "It is.", finish: STOP, usage: { ...READ, cachedInputTokens: 5 } },
    errors: [
      {
        status: 401,
        body: {
          id: "o1",
          error: {
            message: "Invalid API key provided.",
            type: "invalid_request_error",
            param: null,
            code: "invalid_api_key",
          },
        },
        code: "upstream_refused_us",
      },
      {
        status: 404,
        body: {
          id: "o1",
          error: {
            message: "Unable to access model none.",
            type: "invalid_request_error",
            param: null,
            code: "model_not_available",
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  fireworks: {
    source: "docs.fireworks.ai, Create Chat Completion, November 2026; litellm issue 3465, May 2024",
    answer: completion({
      model: "accounts/fireworks/models/glm-4p6",
      choice: { message: says("It is.", { reasoning_content: "Hm." }), finish_reason: "stop" },
      usage: { ...COUNTED, prompt_tokens_details: { cached_tokens: 5 } },
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: { ...READ, cachedInputTokens: 5 } },
    errors: [
      {
        status: 404,
        body: {
          error: {
            object: "error",
            type: "invalid_request_error",
            code: "NOT_FOUND",
            message: "Model not found, inaccessible, and/or not deployed",
          },
        },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: {
          error: {
            object: "error",
            type: "invalid_request_error",
            message: "[{'loc': ('body', 'user'), 'msg': 'Extra inputs are not permitted'}]",
          },
        },
        // The words are in quotation marks, as a caller's might be.
        code: "upstream_rejected",
      },
    ],
  },
  cerebras: {
    source:
      "inference-docs.cerebras.ai, Chat Completions and Error Codes, November 2026; continue issue 9800, January 2026",
    answer: completion({
      model: "gpt-oss-120b",
      choice: { finish_reason: "stop", message: says("It is.", { reasoning: "Hm." }) },
      usage: {
        ...COUNTED,
        prompt_tokens_details: { cached_tokens: 5 },
        completion_tokens_details: {
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
          reasoning_tokens: 4,
        },
      },
      time_info: {
        queue_time: 0.001,
        prompt_time: 0.002,
        completion_time: 0.01,
        total_time: 0.02,
        created: 1_795_000_000,
      },
      system_fingerprint: "fp_1",
    }),
    expected: {
      text: "It is.",
      reasoning: "Hm.",
      finish: STOP,
      usage: { ...READ, cachedInputTokens: 5, reasoningOutputTokens: 4 },
    },
    errors: [
      {
        status: 401,
        body: { message: "Wrong API Key", type: "invalid_request_error", param: "api_key", code: "wrong_api_key" },
        code: "upstream_refused_us",
      },
      {
        status: 429,
        body: {
          message: "Tokens per minute limit exceeded - too many tokens processed.",
          type: "too_many_tokens_error",
          param: "quota",
          code: "token_quota_exceeded",
        },
        code: "upstream_rate_limited",
      },
    ],
  },
  perplexity: {
    source: "docs.perplexity.ai, Chat Completions, November 2026; fixtures of vercel/ai, packages/perplexity, 2026",
    answer: completion({
      model: "sonar-pro",
      choice: { message: says("It is.[1]"), finish_reason: "stop", delta: { role: "assistant", content: "" } },
      usage: {
        ...COUNTED,
        search_context_size: "low",
        num_search_queries: 2,
        cost: { input_tokens_cost: 0.00002, output_tokens_cost: 0.00001, request_cost: 0.006, total_cost: 0.00603 },
      },
      citations: ["https://a.example"],
      search_results: [{ title: "A", url: "https://a.example", date: "2026-11-20" }],
    }),
    expected: { text: "It is.[1]", finish: STOP, usage: { ...READ, webSearches: 2 } },
    errors: [
      {
        status: 401,
        body: { error: { message: "Invalid API key provided.", type: "invalid_api_key", code: 401 } },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: { error: { message: "Invalid model 'none'.", type: "invalid_model", code: 400 } },
        code: "upstream_refused_us",
      },
    ],
  },
  cohere: {
    source: "docs.cohere.com, Using Cohere models via the OpenAI SDK, and Errors, November 2026",
    answer: completion({
      model: "command-a-03-2025",
      choice: { finish_reason: "stop", message: says("It is.") },
      usage: COUNTED,
    }),
    expected: { text: "It is.", finish: STOP, usage: READ },
    errors: [
      { status: 401, body: { id: "1", message: "invalid api token" }, code: "upstream_refused_us" },
      {
        status: 400,
        body: {
          id: "1",
          message: "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
        },
        code: "upstream_rejected",
        detail: "context_length_exceeded",
      },
    ],
  },
  nvidia: {
    source:
      "docs.api.nvidia.com, Create chat completion, November 2026; free-claude-code issue 1021, July 2026; 9router issue 2527, July 2026",
    answer: completion({
      model: "nvidia/nemotron-3-super-120b-a12b",
      choice: {
        message: says("It is.", { reasoning_content: "Hm.", tool_calls: [] }),
        logprobs: null,
        finish_reason: "stop",
        stop_reason: null,
      },
      usage: { ...COUNTED, prompt_tokens_details: null },
      prompt_logprobs: null,
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: READ },
    errors: [
      {
        status: 404,
        body: { status: 404, title: "Not Found", detail: "Function '1': Not found for account '2'" },
        code: "upstream_refused_us",
      },
      {
        status: 403,
        body: { status: 403, title: "Forbidden", detail: "Authorization failed" },
        code: "upstream_refused_us",
      },
      {
        status: 400,
        body: { status: 400, title: "Bad Request", detail: "Function id '1': DEGRADED function cannot be invoked" },
        code: "upstream_unavailable",
        detail: "upstream_overloaded",
      },
    ],
  },
  huggingface: {
    source:
      "huggingface.co, Inference Providers, Chat Completion, November 2026; coreply issue 19, January 2026; vercel/ai pull request 7788, 2025",
    answer: completion({
      model: "openai/gpt-oss-120b",
      choice: { message: says("It is.", { reasoning: "Hm." }), finish_reason: "stop", logprobs: null },
      usage: { ...COUNTED, completion_tokens_details: { reasoning_tokens: 4 } },
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: { ...READ, reasoningOutputTokens: 4 } },
    errors: [
      { status: 401, body: { error: "Invalid username or password." }, code: "upstream_refused_us" },
      {
        status: 400,
        body: {
          error: {
            message: "The requested model 'none' is not supported by any provider you have enabled.",
            type: "invalid_request_error",
            param: "model",
            code: "model_not_supported",
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  ollama: {
    source: "docs.ollama.com, OpenAI compatibility, November 2026; QAnything issue 555, October 2024",
    answer: completion({
      model: "qwen3:8b",
      system_fingerprint: "fp_ollama",
      choice: { message: says("It is.", { reasoning: "Hm." }), finish_reason: "stop" },
      usage: COUNTED,
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: READ },
    errors: [
      {
        status: 404,
        body: {
          error: {
            message: 'model "none" not found, try pulling it first',
            type: "api_error",
            param: null,
            code: null,
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  vllm: {
    source:
      "docs.vllm.ai, OpenAI-Compatible Server, November 2026; vllm issue 4667, 2024, and Alpha-SQL issue 5, July 2025",
    answer: completion({
      model: "Qwen/Qwen3-32B",
      choice: {
        message: says("It is.", {
          reasoning: "Hm.",
          reasoning_content: "Hm.",
          refusal: null,
          function_call: null,
          tool_calls: [],
        }),
        logprobs: null,
        finish_reason: "length",
        stop_reason: null,
        token_ids: null,
      },
      usage: { ...COUNTED, prompt_tokens_details: { cached_tokens: 5 } },
      prompt_logprobs: null,
      kv_transfer_params: null,
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: LENGTH, usage: { ...READ, cachedInputTokens: 5 } },
    errors: [
      {
        status: 400,
        body: {
          error: {
            message: "This model's maximum context length is 32768 tokens. However, you requested 41648 tokens.",
            type: "BadRequestError",
            param: null,
            code: 400,
          },
        },
        code: "upstream_rejected",
        detail: "context_length_exceeded",
      },
      {
        status: 404,
        body: {
          object: "error",
          message: "The model `none` does not exist.",
          type: "NotFoundError",
          param: "model",
          code: 404,
        },
        code: "upstream_refused_us",
      },
    ],
  },
  lmstudio: {
    source: "lmstudio.ai, OpenAI Compatibility Endpoints, November 2026; openhuman issue 4181, June 2026",
    answer: completion({
      model: "qwen3-8b",
      choice: {
        logprobs: null,
        finish_reason: "stop",
        message: says("It is.", { reasoning_content: "Hm.", tool_calls: [] }),
      },
      usage: { ...COUNTED, completion_tokens_details: { reasoning_tokens: 4 } },
      stats: {},
      system_fingerprint: "qwen3-8b",
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: { ...READ, reasoningOutputTokens: 4 } },
    errors: [
      {
        status: 400,
        body: {
          error: {
            message: "No models loaded. Please load a model in the developer page.",
            type: "invalid_request_error",
            param: "model",
          },
        },
        code: "upstream_refused_us",
      },
    ],
  },
  llamacpp: {
    source:
      "llama.cpp, tools/server/README.md, November 2026, and pull requests 15780, September 2025, and 23110, May 2026",
    answer: completion({
      model: "gpt-3.5-turbo",
      choice: { finish_reason: "stop", message: says("It is.", { reasoning_content: "Hm." }) },
      system_fingerprint: "b7200",
      usage: { ...COUNTED, prompt_tokens_details: { cached_tokens: 5 } },
      timings: { cache_n: 5, prompt_n: 15, prompt_ms: 30.9, predicted_n: 9, predicted_ms: 66.1 },
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: { ...READ, cachedInputTokens: 5 } },
    errors: [
      {
        status: 400,
        body: {
          error: {
            code: 400,
            message: "the request exceeds the available context size, try increasing it",
            type: "exceed_context_size_error",
            n_prompt_tokens: 1407,
            n_ctx: 256,
          },
        },
        code: "upstream_rejected",
        detail: "context_length_exceeded",
      },
      {
        status: 401,
        body: { error: { code: 401, message: "Invalid API Key", type: "authentication_error" } },
        code: "upstream_refused_us",
      },
      {
        status: 503,
        body: { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
        code: "upstream_unavailable",
      },
    ],
  },
  sglang: {
    source:
      "docs.sglang.ai, OpenAI APIs - Completions, November 2026; sglang issues 12100, October 2025, and 25127, May 2026",
    answer: completion({
      model: "Qwen/Qwen3-32B",
      choice: {
        message: says("It is.", { reasoning_content: "Hm.", tool_calls: null }),
        logprobs: null,
        finish_reason: "stop",
        matched_stop: 151_645,
      },
      usage: { ...COUNTED, prompt_tokens_details: null, reasoning_tokens: 4 },
      metadata: { weight_version: "default" },
    }),
    expected: { text: "It is.", reasoning: "Hm.", finish: STOP, usage: READ },
    errors: [
      {
        status: 400,
        body: {
          object: "error",
          message: "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
          type: "BadRequestError",
          param: null,
          code: 400,
        },
        code: "upstream_rejected",
        detail: "context_length_exceeded",
      },
      { status: 401, body: { error: "Unauthorized" }, code: "upstream_refused_us" },
    ],
  },
};
