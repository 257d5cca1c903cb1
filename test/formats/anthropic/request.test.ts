import { describe, expect, it } from "vitest";
import { ImageDetail, Role } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { MAX_MESSAGES, MAX_UNRECOGNIZED } from "../../../src/core/validate.ts";
import { type ReadRequest, readMessagesRequest } from "../../../src/formats/anthropic/request.ts";
import { writeState } from "../../../src/formats/anthropic/state.ts";
import { failureOf } from "../../support/errors.ts";

const HELLO = { role: "user", content: "Hi" };

function read(fields: object = {}, headers: Readonly<Record<string, string>> = {}): ReadRequest {
  return readMessagesRequest({ json: { model: "m", max_tokens: 100, messages: [HELLO], ...fields }, headers });
}

/** What was read, as plain JSON without empty fields. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, inner: unknown) => {
      if (key === "$typeName" || inner === "" || inner === false) return undefined;
      if (key === "providerDetailsJson" && Object.keys(inner as object).length === 0) return undefined;
      if (typeof inner === "bigint") return Number(inner);
      if (Array.isArray(inner) && inner.length === 0) return undefined;
      return inner;
    }),
  );
}

const messagesOf = (messages: readonly object[], fields: object = {}): unknown =>
  plain(read({ messages, ...fields }).request.messages);

const text = (value: string): object => ({ kind: { case: "text", value } });

/** The field and the description of each violation. */
function violationsOf(json: unknown): string[] {
  return failureOf(() => readMessagesRequest({ json, headers: {} })).violations.map(
    ({ field, description }) => `${field} ${description}`,
  );
}

describe("options", () => {
  it("have their places in the contract", () => {
    const { request, stream } = read({
      fallback_models: ["n"],
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop_sequences: ["END"],
      metadata: { user_id: "u1" },
      service_tier: "auto",
      parley: { strict: true },
    });
    expect(stream).toBe(true);
    expect(request).toMatchObject({
      model: "m",
      maxOutputTokens: 100,
      fallbackModels: ["n"],
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stopSequences: ["END"],
      endUserId: "u1",
      serviceTier: "auto",
      strict: true,
    });
  });

  it("may be null, and max_tokens may be left out", () => {
    const { request } = readMessagesRequest({
      json: {
        model: "m",
        messages: [HELLO],
        max_tokens: null,
        system: null,
        tools: null,
        thinking: null,
        metadata: null,
      },
      headers: {},
    });
    expect(request.maxOutputTokens).toBeUndefined();
    expect(request.messages).toHaveLength(1);
  });

  it("name the standard tier in the contract's word", () => {
    expect(read({ service_tier: "standard_only" }).request.serviceTier).toBe("default");
  });

  it("take the session of Claude Code from its header, and leave out one that is too long", () => {
    const name = "x-claude-code-session-id";
    expect(read({}, { [name]: "s1" }).request.sessionId).toBe("s1");
    expect(read({}, { [name]: "s".repeat(257) }).request.sessionId).toBeUndefined();
  });

  it("have the first four stop sequences, and list the others", () => {
    const { request, unrecognized } = read({ stop_sequences: ["1", "2", "3", "4", "5", "6"] });
    expect(request.stopSequences).toEqual(["1", "2", "3", "4"]);
    expect(unrecognized).toEqual(["stop_sequences.4", "stop_sequences.5"]);
  });

  it("list unknown fields within fields", () => {
    const { unrecognized } = read({
      cache_control: { type: "persistent", later: 1 },
      output_config: { format: { type: "json_schema", schema: {}, later: 1 } },
      output_format: { type: "json_schema", schema: {}, later: 1 },
      tools: [{ name: "f", input_schema: {}, cache_control: { type: "ephemeral", ttl: "1h", later: 1 } }],
      tool_choice: { type: "auto", disable_parallel_tool_use: true, name: "f" },
    });
    expect(unrecognized.toSorted()).toEqual([
      "cache_control.later",
      "cache_control.type",
      "output_config.format.later",
      "output_format.later",
      "tool_choice.name",
      "tools.0.cache_control.later",
    ]);
  });

  it("list unknown fields within blocks of any place", () => {
    const later = 1;
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=", later } };
    const { unrecognized } = read({
      system: [{ type: "text", text: "s", cache_control: { type: "persistent" } }],
      messages: [
        {
          role: "user",
          content: [
            image,
            { type: "document", source: { type: "text", data: "d", later }, citations: { enabled: true, later } },
            { type: "document", source: { type: "content", content: [image], later }, later },
            { type: "image", source: { type: "url", url: "https://a.example/b.png", later } },
            { type: "later", cache_control: { type: "ephemeral", later } },
          ],
        },
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: { later } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [image] }] },
      ],
    });
    const content = "messages.0.content";
    expect(unrecognized.toSorted()).toEqual([
      `${content}.0.source.later`,
      `${content}.1.citations.later`,
      `${content}.1.source.later`,
      `${content}.2.later`,
      `${content}.2.source.content.0.source.later`,
      `${content}.2.source.later`,
      `${content}.3.source.later`,
      `${content}.4.cache_control.later`,
      "messages.2.content.0.content.0.source.later",
      "system.0.cache_control.type",
    ]);
  });
});

describe("reasoning", () => {
  const reasoningOf = (fields: object): unknown => {
    const { reasoning } = read(fields).request;
    return reasoning && { effort: reasoning.effort, maxTokens: reasoning.maxTokens };
  };
  const effort = (value: ReasoningEffort): object => ({ effort: value, maxTokens: undefined });
  const tokens = (maxTokens: number): object => ({ effort: ReasoningEffort.UNSPECIFIED, maxTokens });

  it.each([
    [{ type: "enabled", budget_tokens: 4000 }, tokens(4000)],
    [{ type: "enabled", budget_tokens: 32_000 }, tokens(32_000)],
    [{ type: "enabled", budget_tokens: -1 }, undefined],
    [{ type: "enabled" }, undefined],
    [{ type: "adaptive" }, effort(ReasoningEffort.HIGH)],
    [{ type: "disabled" }, effort(ReasoningEffort.NONE)],
    [{ type: "between_tools" }, undefined],
  ])("of %j is read without checks of the budget", (thinking, amount) => {
    expect(reasoningOf({ thinking })).toEqual(amount);
  });

  it("lists a budget that is none", () => {
    expect(read({ thinking: { type: "enabled", budget_tokens: -1 } }).unrecognized).toEqual(["thinking.budget_tokens"]);
  });

  it("is by the effort where there is one, unless it is disabled", () => {
    const output_config = { effort: "low" };
    expect(reasoningOf({ output_config })).toEqual(effort(ReasoningEffort.LOW));
    expect(reasoningOf({ output_config, thinking: { type: "enabled", budget_tokens: 4000 } })).toEqual({
      effort: ReasoningEffort.LOW,
      maxTokens: 4000,
    });
    expect(reasoningOf({ output_config, thinking: { type: "disabled" } })).toEqual(effort(ReasoningEffort.NONE));
  });

  it("is hidden on request", () => {
    expect(read({ thinking: { type: "adaptive", display: "omitted" } }).hidesThinking).toBe(true);
    expect(read({ thinking: { type: "adaptive", display: "summarized" } }).hidesThinking).toBe(false);
  });
});

describe("the form of the answer", () => {
  const format = { type: "json_schema", schema: { type: "object", properties: { a: { type: "string" } } } };

  it.each([{ output_config: { format } }, { output_format: format }])("is a schema with a name: %j", (fields) => {
    expect(read(fields).request.responseFormat?.format).toMatchObject({
      case: "jsonSchema",
      value: { name: "output", strict: true, schemaJson: JSON.stringify(format.schema) },
    });
  });
});

describe("tools", () => {
  const schema = { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" };

  it("of the caller's own are functions, with and without a type", () => {
    const tool = { name: "f", description: "d", input_schema: schema, strict: true };
    const { request, unrecognized } = read({
      tools: [
        { ...tool, cache_control: { type: "ephemeral", ttl: "1h" } },
        { type: "custom", ...tool },
        { type: null, name: "g", input_schema: schema, eager_input_streaming: true },
      ],
    });
    const value = { name: "f", description: "d", parametersJson: JSON.stringify(schema), strict: true };
    expect(request.tools).toMatchObject([
      { kind: { case: "function", value }, cacheMark: { ttl: { seconds: 3600n } } },
      { kind: { case: "function", value } },
      { kind: { case: "function", value: { name: "g", description: "" } } },
    ]);
    expect(unrecognized).toEqual(["tools.2.eager_input_streaming"]);
  });

  it("of the provider are native, without their cache mark", () => {
    const tool = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
    expect(read({ tools: [{ ...tool, cache_control: { type: "ephemeral" } }] }).request.tools).toMatchObject([
      { kind: { case: "native", value: { dialect: "anthropic", json: JSON.stringify(tool) } }, cacheMark: {} },
    ]);
  });

  it.each<[object, object]>([
    [{ type: "auto" }, { case: "mode", value: ToolMode.AUTO }],
    [{ type: "any" }, { case: "mode", value: ToolMode.REQUIRED }],
    [{ type: "none" }, { case: "mode", value: ToolMode.NONE }],
    [
      { type: "tool", name: "f" },
      { case: "function", value: "f" },
    ],
  ])("are chosen by %j", (tool_choice, choice) => {
    const { request } = read({ tools: [{ name: "f", input_schema: {} }], tool_choice });
    expect(request.toolChoice?.choice).toEqual(choice);
    expect(request.parallelToolCalls).toBeUndefined();
  });

  it("that the provider runs are forced by any choice when they are alone", () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    const tool_choice = { type: "tool", name: "web_search" };
    expect(read({ tools, tool_choice }).request.toolChoice?.choice).toEqual({ case: "mode", value: ToolMode.REQUIRED });
    const more = [...tools, { name: "f", input_schema: {} }];
    expect(read({ tools: more, tool_choice }).request.toolChoice?.choice).toMatchObject({ case: "function" });
  });

  it.each([
    [true, false],
    [false, true],
  ])("may be called at once unless disable_parallel_tool_use is %s", (disable_parallel_tool_use, parallel) => {
    const { request } = read({ tool_choice: { type: "auto", disable_parallel_tool_use } });
    expect(request.parallelToolCalls).toBe(parallel);
  });
});

describe("the system prompt", () => {
  it("is the first message", () => {
    expect(messagesOf([HELLO], { system: "Be brief." })).toEqual([
      { role: Role.SYSTEM, parts: [text("Be brief.")] },
      { role: Role.USER, parts: [text("Hi")] },
    ]);
  });

  it("has a part for each block, with its cache mark", () => {
    const system = [
      { type: "text", text: "One" },
      { type: "text", text: "Two", cache_control: { type: "ephemeral", ttl: "5m" } },
    ];
    expect(messagesOf([HELLO], { system })).toMatchObject([
      { parts: [text("One"), { ...text("Two"), cacheMark: { ttl: { seconds: 300 } } }] },
      {},
    ]);
  });

  it("may stand among the messages", () => {
    expect(messagesOf([HELLO, { role: "system", content: [{ type: "text", text: "Now" }] }])).toEqual([
      { role: Role.USER, parts: [text("Hi")] },
      { role: Role.SYSTEM, parts: [text("Now")] },
    ]);
  });

  it("is left out when it is empty", () => {
    expect(messagesOf([HELLO], { system: "" })).toHaveLength(1);
    expect(messagesOf([HELLO], { system: [] })).toHaveLength(1);
  });
});

const PIXEL = "iVBORw0KGgo=";
const PDF = "JVBERi0=";

/** The parts of a user message with these blocks. */
const partsOf = (...content: object[]): unknown =>
  (messagesOf([{ role: "user", content }]) as { parts: unknown }[])[0]!.parts;

describe("blocks of a user", () => {
  it("may be pictures by their bytes or their address", () => {
    const content = [
      { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
      { type: "image", source: { type: "url", url: "https://x/y.png" } },
    ];
    expect(read({ messages: [{ role: "user", content }] }).request.messages[0]?.parts).toMatchObject([
      {
        kind: {
          case: "image",
          value: {
            source: { case: "data", value: Buffer.from(PIXEL, "base64") },
            mediaType: "image/png",
            detail: ImageDetail.UNSPECIFIED,
          },
        },
      },
      { kind: { case: "image", value: { source: { case: "url", value: "https://x/y.png" } } } },
    ]);
  });

  it("are pictures of the type that their bytes have", () => {
    const source = { type: "base64", media_type: "image/jpeg", data: PIXEL };
    expect(partsOf({ type: "image", source })).toMatchObject([{ kind: { value: { mediaType: "image/png" } } }]);
  });

  it("may be documents, to be cited or not", () => {
    const content = [
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: PDF }, title: "T" },
      {
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Text" },
        citations: { enabled: true },
      },
      { type: "document", source: { type: "url", url: "https://x/y.pdf" }, context: "c" },
      { type: "document", source: { type: "content", content: "Words" } },
    ];
    const { request, unrecognized } = read({ messages: [{ role: "user", content }] });
    expect(request.messages[0]?.parts.map(({ kind }) => kind.value)).toMatchObject([
      {
        source: { case: "data", value: Buffer.from(PDF, "base64") },
        mediaType: "application/pdf",
        name: "T",
        citations: false,
      },
      { source: { case: "data", value: Buffer.from("Text") }, mediaType: "text/plain", citations: true },
      { source: { case: "url", value: "https://x/y.pdf" } },
      { source: { case: "data", value: Buffer.from("Words") }, mediaType: "text/plain" },
    ]);
    expect(unrecognized).toEqual(["messages.0.content.2.context"]);
  });

  it("may be a document in blocks: the blocks, or a native block that can be cited", () => {
    const content = [
      { type: "text", text: "One" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
    ];
    const document = { type: "document", source: { type: "content", content } };
    expect(partsOf(document)).toMatchObject([text("One"), { kind: { case: "image" } }]);
    const cited = { ...document, citations: { enabled: true } };
    expect(partsOf(cited)).toEqual([
      { kind: { case: "native", value: { dialect: "anthropic", json: JSON.stringify(cited) } } },
    ]);
  });

  it.each([
    { type: "image", source: { type: "file", file_id: "file_1" } },
    { type: "document", source: { type: "file", file_id: "file_1" } },
    { type: "search_result", source: "https://x", title: "T", content: [{ type: "text", text: "t" }] },
    { type: "container_upload", file_id: "file_1" },
  ])("that other dialects have no word for are native: %j", (block) => {
    const native = { kind: { case: "native", value: { dialect: "anthropic", json: JSON.stringify(block) } } };
    expect(partsOf({ ...block, cache_control: { type: "ephemeral" } })).toEqual([{ ...native, cacheMark: {} }]);
  });
});

const CALL = { type: "tool_use", id: "t1", name: "f", input: { a: 1 } };

describe("calls and their results", () => {
  it("become calls, and results in a message of their own before the other blocks", () => {
    const messages = [
      HELLO,
      { role: "assistant", content: [{ type: "text", text: "Calling" }, CALL, { ...CALL, id: "t2" }] },
      {
        role: "user",
        content: [
          { type: "text", text: "And now?" },
          {
            type: "tool_result",
            tool_use_id: "t1",
            content: "sunny",
            is_error: true,
            cache_control: { type: "ephemeral" },
          },
          { type: "tool_result", tool_use_id: "t2" },
        ],
      },
    ];
    expect(messagesOf(messages)).toEqual([
      { role: Role.USER, parts: [text("Hi")] },
      {
        role: Role.ASSISTANT,
        parts: [
          text("Calling"),
          {
            kind: {
              case: "toolCall",
              value: { id: "t1", name: "f", input: { case: "argumentsJson", value: `{"a":1}` } },
            },
          },
          {
            kind: {
              case: "toolCall",
              value: { id: "t2", name: "f", input: { case: "argumentsJson", value: `{"a":1}` } },
            },
          },
        ],
      },
      {
        role: Role.TOOL,
        parts: [
          {
            kind: { case: "toolResult", value: { toolCallId: "t1", parts: [text("sunny")], isError: true } },
            cacheMark: {},
          },
          { kind: { case: "toolResult", value: { toolCallId: "t2" } } },
        ],
      },
      { role: Role.USER, parts: [text("And now?")] },
    ]);
  });

  it("keep the calls of neighbouring messages in one turn, so that their results follow", () => {
    const messages = [
      HELLO,
      { role: "assistant", content: [CALL] },
      { role: "assistant", content: "Wait" },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "x" }] },
    ];
    const { request, nameOf } = read({ messages });
    expect(request.messages.map(({ role, parts }) => [role, parts.length])).toEqual([
      [Role.USER, 1],
      [Role.ASSISTANT, 2],
      [Role.TOOL, 1],
    ]);
    expect(nameOf("messages[1].parts[1]")).toBe("messages.2.content");
    expect(nameOf("messages[2].parts[0]")).toBe("messages.3.content.0");
  });
});

describe("instructions between calls and their results", () => {
  it("come after the results", () => {
    const messages = [
      HELLO,
      { role: "assistant", content: [CALL] },
      { role: "system", content: "Now" },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "x" },
          { type: "text", text: "So?" },
        ],
      },
    ];
    const { request, nameOf } = read({ messages });
    expect(request.messages.map(({ role }) => role)).toEqual([
      Role.USER,
      Role.ASSISTANT,
      Role.TOOL,
      Role.SYSTEM,
      Role.USER,
    ]);
    const names = [2, 3, 4].map((at) => nameOf(`messages[${at}].parts[0]`));
    expect(names).toEqual(["messages.3.content.0", "messages.2.content", "messages.3.content.1"]);
  });
});

describe("reasoning of earlier answers", () => {
  it("has its signature, or none", () => {
    const content = [
      { type: "thinking", thinking: "Hm", signature: "sig" },
      { type: "thinking", thinking: "Hm" },
      { type: "thinking", thinking: "", signature: "" },
      { type: "redacted_thinking", data: "zzz" },
    ];
    expect(messagesOf([HELLO, { role: "assistant", content }])).toMatchObject([
      {},
      {
        parts: [
          { kind: { case: "reasoning", value: { text: "Hm" } }, signature: "sig" },
          { kind: { case: "reasoning", value: { text: "Hm" } } },
          { kind: { case: "reasoning" } },
          { kind: { case: "reasoning", value: { redacted: "zzz" } } },
        ],
      },
    ]);
  });

  it("is the state of a call or a text where it was made for one", () => {
    const state = (signature: string, toolCall?: string): object => ({
      type: "thinking",
      thinking: "",
      signature: writeState({ toolCall, signature }),
    });
    const content = [
      state("a"),
      { type: "text", text: "Calling" },
      state("b"),
      state("c", "t1"),
      CALL,
      state("d", "t9"),
    ];
    expect(messagesOf([HELLO, { role: "assistant", content }])).toMatchObject([
      {},
      {
        parts: [
          { kind: { case: "text" }, signature: "a" },
          { ...text("Calling"), signature: "b" },
          { kind: { case: "toolCall" }, signature: "c" },
        ],
      },
    ]);
  });
});

describe("a mark for the whole conversation", () => {
  it("is that of its last part", () => {
    const { request } = read({
      cache_control: { type: "ephemeral" },
      messages: [HELLO, { role: "assistant", content: "Yes" }],
    });
    expect(request.messages.map(({ parts }) => parts[0]?.cacheMark)).toMatchObject([undefined, {}]);
  });
});

describe("a mark for the whole conversation beside that of its last part", () => {
  it.each([
    ["5m", "1h", 3600n],
    ["1h", "5m", 3600n],
    [undefined, "1h", 3600n],
    ["1h", undefined, 3600n],
  ])("has the longer of their lifetimes: %s, %s", (own, whole, seconds) => {
    const mark = (ttl: string | undefined): object => ({ type: "ephemeral", ...(ttl && { ttl }) });
    const { request } = read({
      cache_control: mark(whole),
      messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control: mark(own) }] }],
    });
    expect(request.messages[0]!.parts[0]!.cacheMark).toMatchObject({ ttl: { seconds } });
  });
});

describe("unknown fields", () => {
  it("are listed by the caller's names", () => {
    const { unrecognized } = read({
      thinking: { type: "adaptive", speed: 1 },
      output_config: { task_budget: {} },
      metadata: { session: "x" },
      parley: { loud: true },
      messages: [{ ...HELLO, weight: 1 }],
    });
    expect(unrecognized).toEqual([
      "thinking.speed",
      "output_config.task_budget",
      "metadata.session",
      "parley.loud",
      "messages.0.weight",
    ]);
  });

  it("of the request are passed on for providers of this dialect, up to a limit, and so are betas", () => {
    const betas = { "anthropic-beta": " new-2027-01-01, not a name,other" };
    const { request, unrecognized, nameOf } = readMessagesRequest({
      json: { model: "m", messages: [HELLO], context_management: { edits: [] }, Loud: 1, betas: ["x"] },
      headers: betas,
    });
    expect(request.providerOptionsJson).toEqual({
      "anthropic.betas": '["new-2027-01-01","other"]',
      "anthropic.context_management": '{"edits":[]}',
    });
    expect(unrecognized).toEqual(["Loud", "betas"]);
    expect(Object.keys(request.providerOptionsJson).map((name) => nameOf(`provider_options_json.${name}`))).toEqual([
      "anthropic-beta",
      "context_management",
    ]);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`field_${at}`, 1]));
    const read40 = read(many);
    expect(Object.keys(read40.request.providerOptionsJson)).toHaveLength(32);
    expect(read40.unrecognized).toHaveLength(8);
  });

  it("are listed up to a limit", () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`field_${at}`, 1]));
    expect(read(many).unrecognized).toHaveLength(MAX_UNRECOGNIZED);
  });
});

describe("a request of a wrong shape", () => {
  const wrong = (fields: object): string[] => violationsOf({ model: "m", messages: [HELLO], ...fields });

  it.each<[object, string]>([
    [{ model: 1 }, "model must be text"],
    [{ messages: "Hi" }, "messages must be a list"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages.0.role must be user, assistant or system"],
    [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages.0.content.0.text is required"],
    [{ messages: [{ role: "user", content: [{ text: "x" }] }] }, "messages.0.content.0.type is required"],
    [
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "disk" } }] }] },
      "messages.0.content.0.source.type must be base64, url or file",
    ],
    [{ system: [{ type: "image" }] }, "system.0.type must be text"],
    [{ tools: [{ name: "f" }] }, "tools.0.input_schema is required"],
    [{ tool_choice: { type: "some" } }, "tool_choice.type must be auto, any, tool or none"],
    [{ thinking: { type: "loud" } }, "thinking.type must be enabled, adaptive, disabled or between_tools"],
    [{ max_tokens: "many" }, "max_tokens must be a whole number"],
    [{ max_tokens: 3_000_000_000 }, "max_tokens is too large"],
    [{ messages: [] }, "messages must hold at least one message"],
    [{ cache_control: { ttl: "soon" } }, "cache_control.ttl must be a time such as 5m or 1h"],
    [
      { messages: [{ role: "user", content: [{ type: "text", text: "x", cache_control: { ttl: "soon" } }] }] },
      "messages.0.content.0.cache_control.ttl must be a time such as 5m or 1h",
    ],
    [
      {
        messages: [
          { role: "user", content: [{ type: "image", source: { type: "base64", media_type: "x", data: "!" } }] },
        ],
      },
      "messages.0.content.0.source.data must be base64",
    ],
  ])("%j names the field in the vendor's style", (fields, violation) => {
    expect(wrong(fields)[0]).toBe(violation);
  });

  it("names the field at the beginning of the message", () => {
    const failure = failureOf(() => read({ system: [{ type: "text" }] }));
    expect(failure.message).toBe("system.0.text: is required.");
  });

  it("has at most twenty violations", () => {
    expect(wrong({ messages: Array.from({ length: 5000 }, () => 1) })).toHaveLength(20);
  });

  it("with too many messages is read no further than core's limit", () => {
    const messages = Array.from({ length: 3 * MAX_MESSAGES }, () => HELLO);
    expect(read({ messages }).request.messages).toHaveLength(MAX_MESSAGES + 1);
  });
});

describe("the caller's names", () => {
  const { nameOf } = read({
    system: [
      { type: "text", text: "x-anthropic-billing-header: a" },
      { type: "text", text: "Be brief." },
    ],
    messages: [
      HELLO,
      { role: "assistant", content: [{ type: "text", text: "Yes" }, CALL] },
      {
        role: "user",
        content: [
          { type: "text", text: "More" },
          { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "x" }] },
        ],
      },
    ],
  });

  it.each([
    ["max_output_tokens", "max_tokens"],
    ["temperature", "temperature"],
    ["stop_sequences[0]", "stop_sequences.0"],
    ["end_user_id", "metadata.user_id"],
    ["reasoning.max_tokens", "thinking.budget_tokens"],
    ["reasoning.effort", "thinking.type"],
    ["parallel_tool_calls", "tool_choice.disable_parallel_tool_use"],
    ["response_format.json_schema.schema_json", "output_config.format.schema"],
    ["response_format.json_schema.schema.properties.a.pattern", "output_config.format.schema.properties.a.pattern"],
    ["tools[1].function.parameters_json.type", "tools.1.input_schema.type"],
    ["tools[1].function.strict", "tools.1.strict"],
    ["tools[1].function.name", "tools.1.name"],
    ["tools[1].cache_mark", "tools.1.cache_control"],
    ["tools[1]", "tools.1"],
    ["messages", "messages"],
    ["messages[0]", "system"],
    ["messages[0].parts[0]", "system.1"],
    ["messages[0].parts[0].cache_mark.ttl", "system.1.cache_control.ttl"],
    ["messages[1].parts[0].cache_mark", "messages.0.content.cache_control"],
    ["messages[1].role", "messages.0.role"],
    ["messages[1].parts", "messages.0.content"],
    ["messages[2].parts[1].tool_call.name", "messages.1.content.1.name"],
    ["messages[3].parts[0].tool_result.tool_call_id", "messages.2.content.1.tool_use_id"],
    ["messages[3].parts[0].tool_result.parts[0]", "messages.2.content.1.content.0"],
    ["messages[3].parts[0].tool_result.is_error", "messages.2.content.1.is_error"],
    ["messages[4].parts[0].file.citations", "messages.2.content.0.citations"],
    ["messages[4].parts[0].image.detail", "messages.2.content.0.detail"],
    ["messages[9].parts[9]", "messages.9.parts.9"],
  ])("of %s is %s", (contract, own) => {
    expect(nameOf(contract)).toBe(own);
  });

  it("of an effort is the field that it came from", () => {
    expect(read({ output_config: { effort: "low" } }).nameOf("reasoning.effort")).toBe("output_config.effort");
  });

  it("of an unknown field is its own", () => {
    expect(read({ "reasoning.max_tokens": 1 }).nameOf("reasoning.max_tokens")).toBe("reasoning.max_tokens");
  });
});
