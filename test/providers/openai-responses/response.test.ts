import { describe, expect, it } from "vitest";
import { MAX_PARTS } from "../../../src/core/validate.ts";
import { toAnswer } from "../../../src/providers/openai-responses/response.ts";
import { readState } from "../../../src/providers/openai-responses/state.ts";
import { readFixture } from "../openai/fixture.ts";
import { readWhole } from "./reading.ts";

const response = (output: readonly object[], more: object = {}) => ({
  id: "resp_1",
  object: "response",
  status: "completed",
  error: null,
  incomplete_details: null,
  output,
  ...more,
});
const message = (...content: object[]) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content,
});
const text = (value: string, more: object = {}) => ({ type: "output_text", text: value, annotations: [], ...more });
const partsOf = (json: unknown): unknown =>
  (readWhole(json).answer as { choices: [{ message: { parts: unknown } }] }).choices[0].message.parts;

describe("a whole response", () => {
  it("gives text, finish and usage with all its details", () => {
    const usage = {
      input_tokens: 10,
      input_tokens_details: {
        cached_tokens: 4,
        cache_write_tokens: 3,
        cache_write_tokens_details: { ttl_12h_tokens: 2 },
      },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 1 },
      total_tokens: 15,
    };
    expect(readWhole(response([message(text("Hi"))], { usage })).answer).toEqual({
      choices: [
        {
          message: { role: "ROLE_ASSISTANT", parts: [{ text: "Hi" }] },
          finishReason: "FINISH_REASON_STOP",
          nativeFinishReason: "completed",
        },
      ],
      usage: {
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 15,
        cachedInputTokens: 4,
        cacheWriteInputTokens: 3,
        cacheWriteHourInputTokens: 2,
        reasoningOutputTokens: 1,
      },
    });
  });

  it.each<[string, object, string, string]>([
    [
      "a call",
      { output: [{ type: "function_call", call_id: "1", name: "f", arguments: "{}" }] },
      "TOOL_CALLS",
      "completed",
    ],
    [
      "the limit of tokens",
      { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
      "LENGTH",
      "max_output_tokens",
    ],
    [
      "a filter",
      { status: "incomplete", incomplete_details: { reason: "content_filter" } },
      "CONTENT_FILTER",
      "content_filter",
    ],
    ["another reason", { status: "incomplete", incomplete_details: { reason: "later" } }, "OTHER", "later"],
    ["no reason", { status: "incomplete", incomplete_details: null }, "OTHER", "incomplete"],
  ])("ends with %s", (_, more, reason, native) => {
    const { answer } = readWhole(response([message(text("Hi"))], more));
    expect(answer).toMatchObject({
      choices: [{ finishReason: `FINISH_REASON_${reason}`, nativeFinishReason: native }],
    });
  });

  it("has its items in their order: reasoning with its state, texts, calls, pictures, and what the provider ran itself", () => {
    const item = {
      id: "rs_1",
      type: "reasoning",
      status: "completed",
      summary: [
        { type: "summary_text", text: "a" },
        { type: "summary_text", text: "b" },
      ],
      encrypted_content: "gAAAAAB/+=",
    };
    const search = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "q" } };
    const output = [
      item,
      search,
      { ...message(text("I look.")), phase: "commentary" },
      { id: "fc_1", type: "function_call", call_id: "1", name: "f", arguments: '{"a":1.50}' },
      { id: "ctc_1", type: "custom_tool_call", call_id: "2", name: "c", input: "raw" },
      { id: "ig_1", type: "image_generation_call", status: "completed", result: "iVBORw==", output_format: "webp" },
    ];
    const { choices, usage } = toAnswer(response(output, { usage: { input_tokens: 1, output_tokens: 1 } }));
    const { parts } = choices[0]!.message!;
    expect(parts.map(({ kind }) => kind.case)).toEqual([
      "reasoning",
      "native",
      "text",
      "toolCall",
      "toolCall",
      "image",
    ]);
    const [reasoning, native, said, call, custom, image] = parts.map(({ kind }) => kind.value);
    expect([reasoning, native, said]).toMatchObject([{ text: "a\n\nb" }, { dialect: "openai-responses" }, "I look."]);
    expect(JSON.parse((native as { json: string }).json)).toEqual(search);
    expect(call).toMatchObject({ id: "1", name: "f", input: { case: "argumentsJson", value: '{"a":1.50}' } });
    expect(custom).toMatchObject({ id: "2", name: "c", input: { case: "customInput", value: "raw" } });
    expect(image).toMatchObject({ mediaType: "image/webp", source: { value: Buffer.from("iVBORw==", "base64") } });
    const { type: _type, status: _status, ...state } = item;
    expect(parts.map(({ signature }) => readState(signature))).toEqual([
      { reasoning: state },
      undefined,
      { phase: "commentary" },
      undefined,
      undefined,
      { image: "ig_1" },
    ]);
    expect(usage?.webSearches).toBe(1);
  });

  it.each([
    ["only in the total", { total_tokens: 99 }, 90],
    ["beside the answer", { output_tokens_details: { reasoning_tokens: 40 } }, 40],
    ["in the answer", { total_tokens: 14, output_tokens_details: { reasoning_tokens: 4 } }, 5],
  ])("counts reasoning that the server counts %s", (_, counts, outputTokens) => {
    const usage = { input_tokens: 9, output_tokens: 5, ...counts };
    expect(toAnswer(response([message(text("a"))], { usage })).usage).toMatchObject({ inputTokens: 9, outputTokens });
  });

  it("names what the provider counts and Parley does not know", () => {
    const usage = { input_tokens: 1, output_tokens: 1, output_tokens_details: { later_tokens: 2 }, file_searches: 3 };
    expect(toAnswer(response([message(text("a"))], { usage })).usage?.unknownUnits).toEqual([
      "output_tokens_details.later_tokens",
      "file_searches",
    ]);
  });

  it("names no costs and sums of OpenRouter and xAI, and the tools that xAI bills", () => {
    const unknownOf = (usage: object) =>
      toAnswer(response([message(text("a"))], { usage: { input_tokens: 1, output_tokens: 2, ...usage } })).usage
        ?.unknownUnits;
    expect(
      unknownOf({ cost: 0.001, cost_details: { upstream_inference_cost: 0.001 }, is_byok: false, num_sources_used: 3 }),
    ).toEqual([]);
    expect(
      unknownOf({
        num_server_side_tools_used: 4,
        cost_in_usd_ticks: 318_319_000,
        context_details: { input_tokens: 1, output_tokens: 2 },
        server_side_tool_usage_details: { web_search_calls: 1, x_search_calls: 3, mcp_calls: 0 },
      }),
    ).toEqual(["server_side_tool_usage_details.x_search_calls"]);
  });

  it("counts what the provider searched, and not the pages that it opened", () => {
    const call = (action: object | undefined) => ({ type: "web_search_call", action });
    const output = [call({ type: "search" }), call({ type: "open_page" }), call(undefined), message(text("a"))];
    expect(toAnswer(response(output, { usage: { input_tokens: 1 } })).usage?.webSearches).toBe(2);
  });

  it("counts the searches that the provider bills, where it says so", () => {
    const output = [{ type: "web_search_call", action: { type: "search" } }, message(text("a"))];
    const counted = (num_requests: number) =>
      toAnswer(response(output, { usage: { input_tokens: 1 }, tool_usage: { web_search: { num_requests } } })).usage;
    expect(counted(3)?.webSearches).toBe(3);
    expect(counted(0)?.webSearches).toBeUndefined();
    // xAI bills the pages that it opened, too.
    const server_side_tool_usage_details = { web_search_calls: 5 };
    const usage = { input_tokens: 1, output_tokens: 2, server_side_tool_usage_details };
    expect(toAnswer(response(output, { usage })).usage).toMatchObject({ webSearches: 5, unknownUnits: [] });
  });

  it("counts the tokens of pictures, which the provider counts apart", () => {
    const usage = { input_tokens: 10, output_tokens: 5, input_tokens_details: { cached_tokens: 2 } };
    const image_gen = {
      input_tokens: 50,
      input_tokens_details: { image_tokens: 20, text_tokens: 30 },
      output_tokens: 1056,
      total_tokens: 1106,
    };
    const image = { type: "image_generation_call", id: "ig_1", result: "iVBORw==" };
    const countedOf = (pictures: object) =>
      toAnswer(response([image], { usage, tool_usage: { image_gen: pictures, web_search: { num_requests: 0 } } }))
        .usage;
    expect(countedOf(image_gen)).toMatchObject({
      inputTokens: 60,
      outputTokens: 1061,
      totalTokens: 1121,
      imageInputTokens: 20,
      imageOutputTokens: 1056,
      cachedInputTokens: 2,
      unknownUnits: [],
    });
    const detailed = {
      ...image_gen,
      cached_tokens: 8,
      cached_tokens_details: { cached_image_tokens: 6, cached_text_tokens: 2 },
      output_tokens_details: { image_tokens: 1000, text_tokens: 56 },
    };
    expect(countedOf(detailed)).toMatchObject({
      outputTokens: 1061,
      imageOutputTokens: 1000,
      cachedInputTokens: 10,
      cachedImageInputTokens: 6,
    });
    // The service may skip pictures whose tokens it does not know.
    expect(countedOf({ ...image_gen, output_tokens: 0 })?.unknownUnits).toEqual(["image_generation_call"]);
  });

  it("counts searches of files and containers for code, which the provider bills without a count", () => {
    const output = [
      { type: "code_interpreter_call", id: "ci_1", code: "1", container_id: "cntr_1" },
      { type: "code_interpreter_call", id: "ci_2", code: "2", container_id: "cntr_1" },
      { type: "code_interpreter_call", id: "ci_3", code: "3", container_id: "cntr_2" },
      { type: "file_search_call", id: "fs_1", queries: ["a"] },
      { type: "file_search_call", id: "fs_2", queries: ["b"] },
      { type: "mcp_call", id: "mcp_1" },
      message(text("a")),
    ];
    const more = { usage: { input_tokens: 1 }, tool_usage: { later_tool: { num_sessions: 1 } } };
    expect(toAnswer(response(output, more)).usage).toMatchObject({
      fileSearches: 2,
      codeExecutions: 2,
      unknownUnits: ["later_tool.num_sessions"],
    });
    // xAI counts each execution, and says so.
    const ofServer = { server_side_tool_usage_details: { code_interpreter_calls: 3, file_search_calls: 4 } };
    expect(toAnswer(response(output, { usage: { input_tokens: 1, ...ofServer } })).usage).toMatchObject({
      fileSearches: 4,
      codeExecutions: 3,
      unknownUnits: [],
    });
  });

  it("shows the reasoning of servers without summaries, and only one of both", () => {
    const content = [{ type: "reasoning_text", text: "long" }];
    const summary = [{ type: "summary_text", text: "short" }];
    expect(partsOf(response([{ type: "reasoning", summary: [], content }]))).toEqual([{ reasoning: { text: "long" } }]);
    expect(partsOf(response([{ type: "reasoning", summary, content }]))).toEqual([{ reasoning: { text: "short" } }]);
  });

  it("keeps the whole of a reasoning item without an ID", () => {
    const item = { summary: [], content: [{ type: "reasoning_text", text: "a" }], encrypted_content: "x" };
    const { parts } = toAnswer(response([{ type: "reasoning", ...item }, message(text("b"))])).choices[0]!.message!;
    expect(readState(parts[0]!.signature)).toEqual({ reasoning: item });
  });

  it("has the sources, refusals and probabilities of its texts", () => {
    const page = { type: "url_citation", url: "https://a.example", title: "t", start_index: 0, end_index: 1 };
    const annotations = [page, { type: "file_citation", file_id: "f", index: 0 }, { ...page, end_index: 0 }];
    const logprobs = [{ token: "a", logprob: -1, bytes: [97], top_logprobs: [] }];
    expect(
      partsOf(response([message(text("a", { annotations, logprobs }), { type: "refusal", refusal: "No." })])),
    ).toEqual([
      {
        text: "a",
        citations: [
          { url: "https://a.example", title: "t", textRange: { end: 1 } },
          { native: { dialect: "openai-responses", json: '{"type":"file_citation","file_id":"f","index":0}' } },
          { url: "https://a.example", title: "t" },
        ],
        logprobs: [{ token: "a", logprob: -1, bytes: "YQ==" }],
      },
      { refusal: "No." },
    ]);
  });

  it("is a call's own arguments, where a server sends an object or none", () => {
    const call = (written: unknown) => ({ type: "function_call", call_id: "1", name: "f", arguments: written });
    expect(partsOf(response([call({ a: 1 }), call(""), call(undefined)]))).toMatchObject([
      { toolCall: { argumentsJson: '{"a":1}' } },
      { toolCall: { argumentsJson: "{}" } },
      { toolCall: { argumentsJson: "{}" } },
    ]);
  });

  it.each<[string, unknown, object]>([
    ["without an end", { ...response([message(text("a"))]), status: "in_progress" }, { code: "upstream_protocol" }],
    ["without a status", { output: [message(text("a"))] }, { code: "upstream_protocol" }],
    ["without content", response([]), { code: "upstream_protocol", requestBound: true }],
    [
      "with a call that has no name",
      response([{ type: "function_call", call_id: "1" }]),
      { code: "upstream_protocol" },
    ],
    ["that failed", { ...response([]), status: "failed" }, { code: "upstream_unavailable" }],
    ["that was cancelled", { ...response([]), status: "cancelled" }, { code: "upstream_unavailable" }],
    [
      "that says why it failed",
      { ...response([]), status: "failed", error: { code: "rate_limit_exceeded", message: "Slow down" } },
      { code: "upstream_rate_limited" },
    ],
    [
      "that failed with a count",
      { ...response([], { usage: { input_tokens: 7, output_tokens: 3 } }), error: { code: "server_error" } },
      { refused: false, usage: expect.objectContaining({ inputTokens: 7, outputTokens: 3 }) as unknown },
    ],
    [
      "that is an error",
      { error: { message: "too long", code: "context_length_exceeded" } },
      { detail: "context_length_exceeded" },
    ],
    ["that is a text", "hello", { code: "upstream_protocol" }],
    [
      "with too many items",
      response(Array.from({ length: MAX_PARTS + 1 }, () => message())),
      { code: "upstream_protocol" },
    ],
    [
      "with too many texts",
      response([message(...Array.from({ length: MAX_PARTS + 1 }, () => text("a")))]),
      { code: "upstream_protocol" },
    ],
  ])("is a failure %s", (_, json, failure) => {
    expect(readWhole(json).failure).toMatchObject(failure);
  });

  it("of Parley itself is read as it was meant", () => {
    const json = readFixture("formats/r09-image-generation").json("expected-reply.json");
    const { parts } = toAnswer(json).choices[0]!.message!;
    expect(parts.map(({ kind }) => kind.case)).toContain("image");
  });
});
