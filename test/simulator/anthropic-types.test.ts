import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import { readMessagesRequest } from "../../src/formats/anthropic/request.ts";
import { toAnthropicRequest } from "../../src/providers/anthropic/request.ts";
import { FIELDS } from "../../src/simulator/anthropic/body.ts";
import { budgetModel } from "../providers/anthropic/model.ts";
import { PIXEL } from "./support/png-reader.ts";
import { openSimulator, post } from "./support/simulators.ts";

/*
 * The simulator reads and writes with the formats. The official client's types say here what the dialect is, so that a mistake
 * of a format is not hidden by its use on both sides.
 */

type Names<T> = Readonly<Record<keyof T, true>>;

describe("the fields that the simulator knows", () => {
  it.each<[keyof typeof FIELDS, object]>([
    [
      "messages",
      {
        ...({
          model: true,
          messages: true,
          max_tokens: true,
          system: true,
          stop_sequences: true,
          stream: true,
          thinking: true,
          output_config: true,
          tools: true,
          tool_choice: true,
          metadata: true,
          service_tier: true,
          cache_control: true,
          speed: true,
          inference_geo: true,
          container: true,
          diagnostics: true,
          workspace_id: true,
          user_profile_id: true,
          context_management: true,
        } satisfies Names<
          Anthropic.MessageCreateParams & Pick<Anthropic.Beta.MessageCreateParams, "context_management">
        >),
        // Not in the client's version of the API.
        temperature: true,
        top_p: true,
        top_k: true,
      },
    ],
    ["messages.cache_control", { type: true, ttl: true } satisfies Names<Anthropic.CacheControlEphemeral>],
    ["messages.messages[]", { role: true, content: true } satisfies Names<Anthropic.MessageParam>],
    ["messages.metadata", { user_id: true } satisfies Names<Anthropic.Metadata>],
    ["messages.output_config", { effort: true, format: true } satisfies Names<Anthropic.OutputConfig>],
    ["messages.output_config.format", { type: true, schema: true } satisfies Names<Anthropic.JSONOutputFormat>],
    [
      "messages.tool_choice",
      { type: true, name: true, disable_parallel_tool_use: true } satisfies Names<Anthropic.ToolChoiceTool>,
    ],
    [
      "messages.tools[]",
      {
        type: true,
        name: true,
        description: true,
        input_schema: true,
        strict: true,
        cache_control: true,
        defer_loading: true,
        eager_input_streaming: true,
        input_examples: true,
        allowed_callers: true,
      } satisfies Names<Anthropic.Tool>,
    ],
  ])("of %s are those of the official client", (place, fields) => {
    expect(FIELDS[place].split(" ").toSorted()).toEqual(Object.keys(fields).toSorted());
  });
});

const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };

/** A request with most of what the contract has, as the official client types it. */
const REQUEST = {
  model: "claude-any",
  max_tokens: 5000,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" }, title: "A" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "text", text: "A picture. The weather follows." },
        { type: "tool_use", id: "toolu_1", name: "get_weather", input: { city: "Oslo" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          content: "No station",
          is_error: true,
        },
        { type: "text", text: "And now?" },
      ],
    },
  ],
  stop_sequences: ["HALT"],
  tools: [
    { name: "get_weather", description: "The weather.", input_schema: schema, cache_control: { type: "ephemeral" } },
    { name: "ping", input_schema: { type: "object" } },
  ],
  tool_choice: { type: "tool", name: "get_weather", disable_parallel_tool_use: true },
  output_config: { format: { type: "json_schema", schema: { ...schema, additionalProperties: false } } },
  service_tier: "auto",
} satisfies Anthropic.MessageCreateParamsNonStreaming;

async function openClient(): Promise<Anthropic> {
  const { url } = await openSimulator();
  return new Anthropic({ apiKey: "any", authToken: null, baseURL: url, maxRetries: 0 });
}

describe("a request as the official client types it", () => {
  it("is the same after the format has read it and the dialect has written it", () => {
    const { request, unrecognized } = readMessagesRequest({ json: structuredClone(REQUEST), headers: {} });
    const { body } = toAnthropicRequest(request, { ...budgetModel(), name: REQUEST.model }, { mode: "whole" });
    expect(unrecognized).toEqual([]);
    expect(JSON.parse(String(body))).toEqual(REQUEST);
  });

  it("is answered by the simulator", async () => {
    const client = await openClient();
    const { content } = await client.messages.create(REQUEST);
    expect(content).toMatchObject([{ type: "tool_use", name: "get_weather" }]);
  });
});

/** What the service writes, and the format does not: all null, or of no use to Parley. */
type UnwrittenUsage = "cache_creation" | "inference_geo" | "server_tool_use" | "service_tier";
type Unwritten = "container" | "diagnostics" | "stop_details";
type Message<U> = Omit<Anthropic.Message, Unwritten | "usage" | "content"> & { usage: U };
type Usage = Omit<Anthropic.Usage, UnwrittenUsage | "output_tokens_details" | "speed">;

describe("an answer as the official client types it", () => {
  const asked = {
    model: "claude-any",
    max_tokens: 2000,
    messages: [{ role: "user" as const, content: "Write 2 words" }],
  };
  const thought = { ...asked, thinking: { type: "enabled", budget_tokens: 1024 } as const };
  const text = expect.any(String) as string;
  const counted = { input_tokens: 7, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  const head = {
    id: expect.stringMatching(/^msg_01[0-9a-f]{22}$/u) as string,
    type: "message",
    role: "assistant",
    model: asked.model,
  } as const;

  it("is all that the simulator writes", async () => {
    const client = await openClient();
    const usage = { ...counted, output_tokens: 2 } satisfies Usage;
    const written = { ...head, stop_reason: "end_turn", stop_sequence: null, usage } satisfies Message<Usage>;
    const content = [{ type: "text", text }] satisfies Omit<Anthropic.TextBlock, "citations">[];
    expect(await client.messages.create(asked)).toEqual({ ...written, content });
  });

  it("is all that the simulator writes of reasoning and of a call", async () => {
    const client = await openClient();
    const tools = [{ name: "get_weather", input_schema: schema }];
    const messages = [{ role: "user" as const, content: "get_weather(city='Oslo')" }];
    const { content, stop_reason: reason } = await client.messages.create({ ...thought, tools, messages });
    expect(reason).toBe("tool_use");
    expect(content).toEqual([
      { type: "thinking", thinking: text, signature: text } satisfies Anthropic.ThinkingBlock,
      {
        type: "tool_use",
        id: expect.stringMatching(/^toolu_01[0-9a-f]{24}$/u) as string,
        name: "get_weather",
        input: { city: "Oslo" },
      } satisfies Omit<Anthropic.ToolUseBlock, "caller">,
    ]);
  });

  it("is all that the simulator writes as a stream", async () => {
    const simulator = await openSimulator();
    const response = await post(simulator, { dialect: "anthropic", body: { ...thought, stream: true } });
    const events = [...(await response.text()).matchAll(/^event: (\w+)\ndata: (.*)\n\n/gmu)];
    const data = events.map(([, name, json]) => {
      const value = JSON.parse(json!) as Anthropic.RawMessageStreamEvent;
      expect(value.type).toBe(name);
      return value;
    });
    const begun = { ...head, stop_reason: null, stop_sequence: null, usage: { ...counted, output_tokens: 1 } };
    const block = (index: number, given: object) => ({ type: "content_block_start", index, content_block: given });
    const delta = (index: number, given: Anthropic.RawContentBlockDelta) => ({
      type: "content_block_delta",
      index,
      delta: given,
    });
    const thinking = data.filter(
      (event) => event.type === "content_block_delta" && event.delta.type === "thinking_delta",
    );
    expect(thinking.length).toBeGreaterThan(5);
    const outputTokens = thinking.length + 2;
    expect(data.filter((event) => !thinking.slice(1).includes(event))).toEqual([
      { type: "message_start", message: { ...(begun satisfies Message<Usage>), content: [] } },
      { type: "ping" },
      block(0, { type: "thinking", thinking: "", signature: "" } satisfies Anthropic.ThinkingBlock),
      delta(0, { type: "thinking_delta", thinking: text } as Anthropic.ThinkingDelta),
      delta(0, { type: "signature_delta", signature: text }),
      { type: "content_block_stop", index: 0 } satisfies Anthropic.RawContentBlockStopEvent,
      block(1, { type: "text", text: "" } satisfies Omit<Anthropic.TextBlock, "citations">),
      delta(1, { type: "text_delta", text }),
      delta(1, { type: "text_delta", text }),
      { type: "content_block_stop", index: 1 } satisfies Anthropic.RawContentBlockStopEvent,
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null } satisfies Omit<
          Anthropic.RawMessageDeltaEvent["delta"],
          "container" | "stop_details"
        >,
        usage: {
          ...counted,
          output_tokens: outputTokens,
          output_tokens_details: { thinking_tokens: thinking.length },
        } satisfies Omit<Anthropic.MessageDeltaUsage, "server_tool_use">,
      },
      { type: "message_stop" } satisfies Anthropic.RawMessageStopEvent,
    ]);
  });
});
