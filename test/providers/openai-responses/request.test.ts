import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { ImageDetail, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { Capabilities, Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { toCountBody, toResponsesRequest } from "../../../src/providers/openai-responses/request.ts";
import { writeState } from "../../../src/providers/openai-responses/state.ts";
import { omittedOf } from "../omissions.ts";
import { modelThat } from "../openai/model.ts";

type Body = OpenAI.Responses.ResponseCreateParamsNonStreaming;
type RequestInit = MessageInitShape<typeof CompletionRequestSchema>;
type MessageInit = NonNullable<RequestInit["messages"]>[number];
type PartInit = NonNullable<Extract<MessageInit, { parts?: unknown }>["parts"]>[number];

const text = (value: string, signature = "") => ({ kind: { case: "text", value }, signature }) as const;
const user = (...parts: PartInit[]): MessageInit => ({ role: Role.USER, parts });
const system = (...parts: PartInit[]): MessageInit => ({ role: Role.SYSTEM, parts });
const assistant = (...parts: PartInit[]): MessageInit => ({ role: Role.ASSISTANT, parts });
const HI = user(text("Hi"));
const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const DRAWS = '{"type":"image_generation","quality":"high"}';
const DATA_URL = `data:image/png;base64,${PNG.toString("base64")}`;

function translate(
  request: RequestInit,
  can: Partial<Capabilities> = {},
  facts: Partial<UpstreamModel> = {},
): Translation & { readonly json: Body } {
  const asked = create(CompletionRequestSchema, { messages: [HI], ...request });
  const translation = toResponsesRequest(asked, modelThat(can, { name: "gpt-any", ...facts }), { mode: "whole" });
  const json = JSON.parse(translation.body.toString()) as Body;
  // What is sent is what Parley takes, and it knows every field of it, but no state and tools of other servers.
  const { unrecognized } = readResponsesRequest(json, { keeps: true });
  expect(unrecognized.filter((field) => !/^(?:input|tools)\[\d+\]$/.test(field))).toEqual([]);
  return { ...translation, json };
}

const bodyOf = (request: RequestInit, can?: Partial<Capabilities>): Body => translate(request, can).json;
const inputOf = (...messages: MessageInit[]): Body["input"] => bodyOf({ messages }).input;
const refusalOf = (
  request: RequestInit,
  can?: Partial<Capabilities>,
  facts?: Partial<UpstreamModel>,
): string | undefined => {
  try {
    translate(request, can, facts);
    return undefined;
  } catch (reason) {
    return (reason as Error).message;
  }
};

describe("a request", () => {
  it("has what it needs, keeps nothing at the provider, and asks for its reasoning", () => {
    const expected: Body = {
      model: "gpt-any",
      input: [{ type: "message", role: "user", content: "Hi" }],
      store: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { summary: "auto" },
    };
    expect(bodyOf({})).toEqual(expected);
  });

  it("has every field that the API has", () => {
    const expected: Body = {
      model: "gpt-any",
      input: [{ type: "message", role: "user", content: "Hi" }],
      store: true,
      include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
      max_output_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 3,
      text: { verbosity: "low" },
      reasoning: { effort: "low", summary: "auto" },
      user: "u",
      safety_identifier: "s",
      metadata: { a: "b" },
      service_tier: "flex",
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
    };
    const { json, omitted, clamped } = translate({
      maxOutputTokens: 100,
      temperature: 0.5,
      topP: 0.9,
      logprobs: { topCount: 3 },
      verbosity: Verbosity.LOW,
      reasoning: { effort: ReasoningEffort.LOW },
      endUserId: "u",
      safetyIdentifier: "s",
      metadata: { a: "b" },
      serviceTier: "flex",
      promptCacheKey: "k",
      sessionId: "other",
      store: true,
      providerOptionsJson: { "openai.prompt_cache_retention": '"24h"' },
    });
    expect([json, omitted, clamped]).toEqual([expected, [], []]);
  });

  it("leaves out what the API has not, and says so", () => {
    const { json, omitted } = translate({
      stopSequences: ["a", "b"],
      topK: 3,
      seed: 1n,
      frequencyPenalty: 1,
      presencePenalty: 1,
      logitBias: { "1": 1 },
      prediction: "p",
      audioOptions: { format: "wav", voice: "v" },
      imageOptions: { mask: { source: { case: "data", value: PNG } } },
      providerOptionsJson: { "openai.web_search_options": "{}" },
      messages: [{ ...(HI as object), name: "Ann" }],
    });
    expect(json).toEqual(bodyOf({}));
    expect(omittedOf({ omitted })).toEqual([
      "messages[0].name",
      "top_k",
      "audio_options",
      "image_options.mask",
      "provider_options_json.openai.web_search_options",
      "stop_sequences",
      "frequency_penalty",
      "presence_penalty",
      "seed",
      "logit_bias",
      "prediction",
    ]);
  });

  it("has at least the 16 output tokens that the service demands, and says so", () => {
    const { json, clamped } = translate({ maxOutputTokens: 1 });
    expect(json.max_output_tokens).toBe(16);
    expect(clamped).toMatchObject([{ field: "max_output_tokens", sent: { kind: { value: 16 } } }]);
  });

  it("is for one choice", () => {
    expect(refusalOf({ choiceCount: 1 })).toBeUndefined();
    expect(refusalOf({ choiceCount: 2 }, { multipleChoices: true })).toContain("choice_count: must be 1");
  });

  it("asks for no reasoning of a model without any, and sends it none", () => {
    const sealed = writeState({ reasoning: { id: "rs_1", summary: [], encrypted_content: "x" } });
    const reasoning: PartInit = { kind: { case: "reasoning", value: {} }, signature: sealed };
    const { json, omitted } = translate(
      { messages: [HI, assistant(reasoning, text("Yes?")), HI], reasoning: { effort: ReasoningEffort.HIGH } },
      { reasoning: "none" },
    );
    expect(json).not.toHaveProperty("include");
    expect(json).not.toHaveProperty("reasoning");
    expect(JSON.stringify(json.input)).not.toContain("rs_1");
    expect(omittedOf({ omitted })).toEqual(["reasoning.effort"]);
  });

  it.each<[string, ReasoningEffort, Partial<Capabilities>, object]>([
    ["a level", ReasoningEffort.MEDIUM, {}, { effort: "medium", summary: "auto" }],
    ["the nearest one", ReasoningEffort.MAX, {}, { effort: "high", summary: "auto" }],
    [
      "any one, where none are listed",
      ReasoningEffort.MAX,
      { reasoningEfforts: [] },
      { effort: "max", summary: "auto" },
    ],
    ["no reasoning, without a summary", ReasoningEffort.NONE, {}, { effort: "none" }],
    [
      "the lowest, where it always reasons",
      ReasoningEffort.NONE,
      { reasoningCanBeDisabled: false },
      { effort: "low", summary: "auto" },
    ],
  ])("asks for %s", (_, effort, can, expected) => {
    expect(bodyOf({ reasoning: { effort } }, can).reasoning).toEqual(expected);
  });

  it("streams a whole answer that may be long", () => {
    expect(translate({ maxOutputTokens: 50 }, { streamAbove: 40 })).toMatchObject({
      streamed: true,
      json: { stream: true },
    });
  });

  it("says what bounds its cost", () => {
    expect(translate({ maxOutputTokens: 50, serviceTier: "ultrafast" }).sent).toMatchObject({
      maxTokens: 50,
      priceFactor: 6,
      unbounded: "no",
      cacheWrite: "minutes",
    });
    const linked: PartInit = {
      kind: { case: "image", value: { source: { case: "url", value: "https://a.example" } } },
    };
    expect(translate({ messages: [user(linked)] }).sent.unbounded).toBe("address");
    const options = { "openai.prompt_cache_options": '{"ttl":"12h"}' };
    expect(translate({ providerOptionsJson: options }).sent.cacheWrite).toBe("hour");
  });

  it("is counted with the fields that the count takes", () => {
    const { body } = translate({
      maxOutputTokens: 50,
      metadata: { a: "b" },
      reasoning: { effort: ReasoningEffort.LOW },
    });
    const counted: OpenAI.Responses.InputTokenCountParams = {
      model: "gpt-any",
      input: [{ type: "message", role: "user", content: "Hi" }],
      reasoning: { effort: "low", summary: "auto" },
    };
    expect(JSON.parse(toCountBody(body).toString())).toEqual(counted);
  });
});

describe("an answer's form", () => {
  const schema = { type: "object", properties: {}, additionalProperties: false };
  const jsonSchema = (value: object): RequestInit => ({
    responseFormat: { format: { case: "jsonSchema", value: { name: "a", ...value } } },
  });

  it("is a schema, flat", () => {
    const format: OpenAI.Responses.ResponseFormatTextJSONSchemaConfig = {
      type: "json_schema",
      name: "a",
      description: "b",
      schema,
      strict: true,
    };
    const asked = jsonSchema({ description: "b", schemaJson: JSON.stringify(schema), strict: true });
    expect(bodyOf(asked).text).toEqual({ format });
    expect(bodyOf(jsonSchema({})).text).toMatchObject({ format: { schema: { type: "object" } } });
  });

  it("is said in the system message for a model that enforces no schema", () => {
    const asked = jsonSchema({ schemaJson: JSON.stringify(schema), description: "The bill" });
    const { json, omitted } = translate({ messages: [system(text("Be brief.")), HI], ...asked }, { jsonSchema: false });
    expect(json.text).toEqual({ format: { type: "json_object" } });
    expect(json).not.toHaveProperty("instructions");
    const [first] = json.input as { role: string; content: { text: string }[] }[];
    expect(first).toMatchObject({
      role: "system",
      content: [{ text: "Be brief." }, { text: /JSON Schema.*The bill/ }],
    });
    expect(omittedOf({ omitted })).toEqual(["response_format.json_schema"]);
    expect(bodyOf(asked, { jsonSchema: false }).input).toMatchObject([{ role: "system" }, { role: "user" }]);
  });

  it("keeps the system message in the input for any JSON: the service looks for the word there", () => {
    const messages = [system(text("Answer in JSON.")), HI];
    const json = bodyOf({ messages, responseFormat: { format: { case: "jsonObject", value: {} } } });
    expect(json).not.toHaveProperty("instructions");
    expect(json.input).toMatchObject([{ role: "system", content: "Answer in JSON." }, { role: "user" }]);
  });
});

describe("tools", () => {
  const f = { kind: { case: "function", value: { name: "f", description: "d", parametersJson: '{"type":"object"}' } } };
  const g = { kind: { case: "function", value: { name: "g", strict: true } } };
  const c = {
    kind: { case: "custom", value: { name: "c", formatJson: '{"type":"grammar","syntax":"lark","definition":"x"}' } },
  };
  const search = { kind: { case: "native", value: { dialect: "openai-responses", json: '{"type":"web_search"}' } } };
  const tools = [f, g, c, search] as RequestInit["tools"] & object;

  it("are flat, not strict unless asked, and of the caller's and the provider's own kinds", () => {
    const expected: Body["tools"] = [
      { type: "function", name: "f", description: "d", parameters: { type: "object" }, strict: false },
      { type: "function", name: "g", parameters: null, strict: true },
      { type: "custom", name: "c", format: { type: "grammar", syntax: "lark", definition: "x" } },
      { type: "web_search" },
    ];
    expect(bodyOf({ tools, parallelToolCalls: false })).toMatchObject({ tools: expected, parallel_tool_calls: false });
  });

  it("take a grammar as chat completions have it", () => {
    const formatJson = '{"type":"grammar","grammar":{"syntax":"regex","definition":"x"}}';
    const nested = { kind: { case: "custom", value: { name: "c", formatJson } } } as const;
    expect(bodyOf({ tools: [nested] }).tools).toEqual([
      { type: "custom", name: "c", format: { type: "grammar", syntax: "regex", definition: "x" } },
    ]);
  });

  it.each<[NonNullable<RequestInit["toolChoice"]>, Body["tool_choice"]]>([
    [{ choice: { case: "mode", value: ToolMode.REQUIRED } }, "required"],
    [{ choice: { case: "mode", value: ToolMode.NONE } }, "none"],
    [{ choice: { case: "function", value: "f" } }, { type: "function", name: "f" }],
    [{ choice: { case: "custom", value: "c" } }, { type: "custom", name: "c" }],
    [
      { choice: { case: "allowed", value: { mode: ToolMode.REQUIRED, names: ["g", "c"] } } },
      {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "g" }, { type: "custom", name: "c" }, { type: "web_search" }],
      },
    ],
  ])("are chosen: %j", (toolChoice, expected) => {
    expect(bodyOf({ tools, toolChoice }).tool_choice).toEqual(expected);
  });

  it("make pictures, where the model does", () => {
    const { IMAGE, TEXT, AUDIO } = Modality;
    expect(bodyOf({ modalities: [TEXT, IMAGE], tools: [f as never] })).toMatchObject({
      tools: [{ name: "f" }, { type: "image_generation" }],
    });
    expect(bodyOf({ modalities: [IMAGE] })).toMatchObject({
      tools: [{ type: "image_generation" }],
      tool_choice: { type: "image_generation" },
    });
    expect(bodyOf({ modalities: [TEXT, IMAGE], imageOptions: { aspectRatio: "1:1" } })).toMatchObject({
      image_config: { aspect_ratio: "1:1" },
    });
    expect(refusalOf({ modalities: [AUDIO] })).toContain("modalities: this model does not make audio");
  });

  it("make one picture at most under a budget, in whatever way it is asked for", () => {
    const native = { kind: { case: "native", value: { dialect: "openai-responses", json: DRAWS } } } as const;
    const callsOf = (request: RequestInit, capped: boolean): unknown => {
      const asked = create(CompletionRequestSchema, { messages: [HI], ...request });
      const { body } = toResponsesRequest(asked, modelThat(), { mode: "whole", capped });
      return (JSON.parse(body.toString()) as Body).max_tool_calls;
    };
    expect(callsOf({ modalities: [Modality.IMAGE] }, true)).toBe(1);
    expect(callsOf({ tools: [native] }, true)).toBe(1);
    const found = `{"type":"tool_search_output","tools":[${DRAWS}]}`;
    const item = { kind: { case: "native", value: { dialect: "openai-responses", json: found } } } as const;
    expect(callsOf({ messages: [HI, assistant(item)] }, true)).toBe(1);
    expect(callsOf({ modalities: [Modality.IMAGE] }, false)).toBeUndefined();
    expect(callsOf({ tools: [f as never] }, true)).toBeUndefined();
  });
});

describe("a conversation", () => {
  it("has the first system message as instructions, and later ones in their places", () => {
    const messages = [system(text("a")), system(text("b")), HI, system(text("c")), HI];
    expect(bodyOf({ messages })).toMatchObject({
      instructions: "a",
      input: [{ role: "system", content: "b" }, { role: "user" }, { role: "system", content: "c" }, { role: "user" }],
    });
    expect(bodyOf({ messages }, { midConversationSystem: false })).toMatchObject({
      input: [
        { role: "system", content: [{ text: "a" }, { text: "b" }, { text: "c" }] },
        { role: "user" },
        { role: "user" },
      ],
    });
    expect(bodyOf({ messages }, { midConversationSystem: false, preservedReasoning: true }).input).toMatchObject([
      { role: "system", content: [{ text: "a" }, { text: "b" }] },
      { role: "user" },
      { role: "user", content: "c" },
      { role: "user" },
    ]);
    expect(bodyOf({ messages: [system(text("a"))] })).toMatchObject({ input: [{ role: "system", content: "a" }] });
  });

  it("has pictures, recordings and documents", () => {
    const expected: OpenAI.Responses.ResponseInputMessageContentList = [
      { type: "input_text", text: "Look" },
      { type: "input_image", image_url: DATA_URL, detail: "high" },
      { type: "input_image", image_url: "https://a.example/b.png", detail: "auto" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERg==" },
      { type: "input_file", file_id: "file_1" },
      { type: "input_file", file_url: "https://a.example/c.pdf" },
    ];
    const sound = { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } };
    const said = user(
      text("Look"),
      {
        kind: {
          case: "image",
          value: { source: { case: "data", value: PNG }, mediaType: "image/png", detail: ImageDetail.HIGH },
        },
      },
      { kind: { case: "image", value: { source: { case: "url", value: "https://a.example/b.png" } } } },
      { kind: { case: "file", value: { source: { case: "data", value: Buffer.from("%PDF") }, name: "a.pdf" } } },
      { kind: { case: "file", value: { source: { case: "id", value: "file_1" } } } },
      { kind: { case: "file", value: { source: { case: "url", value: "https://a.example/c.pdf" } } } },
      {
        kind: {
          case: "audio",
          value: { source: { case: "data", value: Buffer.from("RIFF") }, mediaType: "audio/wav" },
        },
      },
    );
    expect(inputOf(said)).toEqual([{ type: "message", role: "user", content: [...expected, sound] }]);
  });

  it("has calls and their results, with pictures, by the kind of the tool", () => {
    const long = "x".repeat(70);
    const call = (id: string, input: object): PartInit =>
      ({ kind: { case: "toolCall", value: { id, name: "f", input } } }) as PartInit;
    const result = (toolCallId: string, ...parts: PartInit[]): PartInit => ({
      kind: { case: "toolResult", value: { toolCallId, parts, isError: false } },
    });
    const picture: PartInit = {
      kind: { case: "image", value: { source: { case: "data", value: PNG }, mediaType: "image/png" } },
    };
    const items = inputOf(
      HI,
      assistant(
        text("I look."),
        call("1", { case: "argumentsJson", value: '{"a":1.50}' }),
        call(long, { case: "customInput", value: "raw" }),
        call("3", {}),
      ),
      { role: Role.TOOL, parts: [result("1", text("ok")), result(long, text("b"), picture), result("3")] },
    );
    const { call_id: shortened } = (items as unknown as { call_id: string }[])[3]!;
    expect(shortened).toHaveLength(64);
    const expected: OpenAI.Responses.ResponseInput = [
      { type: "message", role: "user", content: "Hi" },
      { type: "message", role: "assistant", content: "I look." },
      { type: "function_call", call_id: "1", name: "f", arguments: '{"a":1.50}' },
      { type: "custom_tool_call", call_id: shortened, name: "f", input: "raw" },
      { type: "function_call", call_id: "3", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "1", output: "ok" },
      {
        type: "custom_tool_call_output",
        call_id: shortened,
        output: [
          { type: "input_text", text: "b" },
          { type: "input_image", image_url: DATA_URL, detail: "auto" },
        ],
      },
      { type: "function_call_output", call_id: "3", output: "" },
    ];
    expect(items).toEqual(expected);
  });

  it("reports what a failed tool and a mark lose", () => {
    const call: PartInit = { kind: { case: "toolCall", value: { id: "1", name: "f" } } };
    const result: PartInit = {
      kind: { case: "toolResult", value: { toolCallId: "1", parts: [text("no")], isError: true } },
      cacheMark: {},
    };
    const { omitted } = translate({ messages: [HI, assistant(call), { role: Role.TOOL, parts: [result] }] });
    expect(omittedOf({ omitted })).toEqual([
      "messages[2].parts[0].cache_mark",
      "messages[2].parts[0].tool_result.is_error",
    ]);
  });
});

describe("an earlier answer", () => {
  const item = {
    id: "rs_1",
    summary: [
      { type: "summary_text" as const, text: "a" },
      { type: "summary_text" as const, text: "b" },
    ],
    encrypted_content: "gAAAAAB/+=",
  };
  const reasoning = (signature: string): PartInit => ({
    kind: { case: "reasoning", value: { text: "other" } },
    signature,
  });

  it("has its reasoning as the provider gave it, in its place", () => {
    const call: PartInit = { kind: { case: "toolCall", value: { id: "1", name: "f" } } };
    const said = assistant(
      reasoning(writeState({ reasoning: item })),
      text("Hm."),
      reasoning(writeState({ reasoning: item })),
      call,
    );
    const result: PartInit = { kind: { case: "toolResult", value: { toolCallId: "1" } } };
    const expected: OpenAI.Responses.ResponseReasoningItem = { type: "reasoning", ...item };
    expect((inputOf(HI, said, { role: Role.TOOL, parts: [result] }) as object[]).slice(1, 4)).toEqual([
      expected,
      { type: "message", role: "assistant", content: "Hm." },
      expected,
    ]);
  });

  it("has no reasoning of another provider, and none without a state", () => {
    const strange = ["", "c2ln", Buffer.from('{"responses":1,"reasoning":{"id":"rs_1"}}').toString("base64"), "ÿ"];
    const { json, omitted } = translate({ messages: [HI, assistant(...strange.map(reasoning), text("Yes?")), HI] });
    expect(json.input).toHaveLength(3);
    expect(omitted).toEqual([]);
  });

  it("leaves out reasoning that nothing follows, and says so", () => {
    const { json, omitted } = translate({ messages: [HI, assistant(reasoning(writeState({ reasoning: item }))), HI] });
    expect(json.input).toHaveLength(2);
    expect(omittedOf({ omitted })).toEqual(["messages[1].parts[0]"]);
  });

  it("leaves out reasoning at its end, where the token limit cut it, and says so", () => {
    const state = writeState({ reasoning: item });
    const cut = assistant(reasoning(state), text("Hm."), reasoning(state), reasoning(state));
    for (const messages of [
      [HI, cut, HI],
      [HI, cut],
    ]) {
      const { json, omitted } = translate({ messages });
      expect((json.input as { type: string }[]).slice(1, 3).map(({ type }) => type)).toEqual(["reasoning", "message"]);
      expect(json.input).toHaveLength(messages.length + 1);
      expect(omittedOf({ omitted }).toSorted()).toEqual(["messages[1].parts[2]", "messages[1].parts[3]"]);
    }
  });

  it("has no reasoning at its end in the caller's own words either", () => {
    const state = writeState({ reasoning: item });
    const own = (...encrypted: string[]) => {
      const said = { role: "assistant", content: "Hm." };
      const after = encrypted.map((encrypted_content) => ({ type: "reasoning", encrypted_content, summary: [] }));
      const input = [{ role: "user", content: "Hi" }, said, ...after, { role: "user", content: "Hi" }];
      const messages = [HI, assistant(text("Hm."), ...encrypted.map(reasoning)), HI];
      return toResponsesRequest(create(CompletionRequestSchema, { messages }), modelThat(), {
        mode: "whole",
        callers: { dialect: "openai-responses", json: { model: "m", input }, mayHaveMore: false },
      });
    };
    expect(own().isCallers).toBe(true);
    const { isCallers, body } = own(state);
    expect(isCallers).not.toBe(true);
    expect((JSON.parse(body.toString()) as Body).input).toHaveLength(3);
  });

  it("has reasoning whose state came last in its place", () => {
    const call: PartInit = { kind: { case: "toolCall", value: { id: "1", name: "f" } } };
    const late = (at: number) => reasoning(writeState({ reasoning: { ...item, id: `rs_${at}` }, at }));
    const result: PartInit = { kind: { case: "toolResult", value: { toolCallId: "1" } } };
    const said = assistant(reasoning(""), text("Hm."), call, late(0), late(2));
    const { json, omitted } = translate({ messages: [HI, said, { role: Role.TOOL, parts: [result] }] });
    expect((json.input as { type: string; id?: string }[]).slice(1, 5)).toMatchObject([
      { type: "reasoning", id: "rs_0" },
      { type: "message" },
      { type: "reasoning", id: "rs_2" },
      { type: "function_call" },
    ]);
    expect(omitted).toEqual([]);
  });

  it("keeps reasoning that its next message follows", () => {
    const messages = [HI, assistant(reasoning(writeState({ reasoning: item }))), assistant(text("Hm.")), HI];
    const { json, omitted } = translate({ messages });
    expect(json.input).toHaveLength(4);
    expect(omitted).toEqual([]);
  });

  it("keeps the phase of its messages, and joins texts without one", () => {
    const said = assistant(text("I look.", writeState({ phase: "commentary" })), text("a"), text(""), text("b"), {
      kind: { case: "refusal", value: "No." },
    });
    expect((inputOf(HI, said, HI) as object[]).slice(1, -1)).toEqual([
      { type: "message", role: "assistant", content: "I look.", phase: "commentary" },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "output_text", text: "a" },
          { type: "output_text", text: "b" },
          { type: "refusal", refusal: "No." },
        ],
      },
    ]);
  });

  it("shows the pictures that the provider made, and no others", () => {
    const picture = (signature: string): PartInit => ({
      kind: { case: "image", value: { source: { case: "data", value: PNG }, mediaType: "image/png" } },
      signature,
    });
    const messages = [HI, assistant(picture(writeState({ image: "ig_1" })), picture("c2ln"), text("There.")), HI];
    const { json, omitted } = translate({ messages });
    expect((json.input as object[])[1]).toEqual({
      type: "image_generation_call",
      id: "ig_1",
      status: "completed",
      result: PNG.toString("base64"),
    });
    expect(omittedOf({ omitted })).toEqual(["messages[1].parts[1]"]);
  });

  it("has what the provider ran itself, and nothing of other dialects", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
    const native = (dialect: string): PartInit => ({
      kind: { case: "native", value: { dialect, json: JSON.stringify(search) } },
    });
    const { json, omitted } = translate({
      messages: [HI, assistant(native("openai-responses"), native("openai"), text("a")), HI],
    });
    expect((json.input as object[]).slice(1, 3)).toEqual([
      search,
      { type: "message", role: "assistant", content: "a" },
    ]);
    expect(omittedOf({ omitted })).toEqual(["messages[1].parts[1]"]);
  });

  it.each([
    ['{"type":"item_reference","id":"msg_1"}', "cannot be a reference"],
    ['{"type":null,"id":"msg_1"}', "cannot be a reference"],
    ['{"id":"msg_1"}', "cannot be a reference"],
    ['{"type":"message","role":"system","content":"s"}', "must be a part of the contract"],
    ['{"role":"system","content":"s"}', "must be a part of the contract"],
    ['{"type":"image_generation_call","id":"ig_1"}', "must be a part of the contract"],
  ])("has no native item that names another one, or that the contract has a part for: %s", (json, why) => {
    const messages = [HI, assistant({ kind: { case: "native", value: { dialect: "openai-responses", json } } })];
    expect(refusalOf({ messages })).toContain(`messages[1].parts[0]: ${why}`);
    const ofAnother = assistant({ kind: { case: "native", value: { dialect: "openai", json } } });
    expect(omittedOf(translate({ messages: [HI, ofAnother] }))).toEqual(["messages[1].parts[0]"]);
  });

  it("has no speech in a native part or a file for a model that hears none", () => {
    const json = '{"type":"input_audio","input_audio":{"data":"AAAA","format":"mp3"}}';
    const native: PartInit = { kind: { case: "native", value: { dialect: "openai-responses", json } } };
    const file: PartInit = {
      kind: { case: "file", value: { source: { case: "data", value: PNG }, mediaType: "audio/mpeg" } },
    };
    for (const part of [native, file]) {
      const asked = { messages: [user(part)] };
      expect(refusalOf(asked, {}, { inputModalities: new Set([Modality.TEXT]) })).toContain("does not read audio");
      expect(refusalOf(asked)).toBeUndefined();
    }
  });

  it("has what was spoken as a text, and refuses what no answer can hold", () => {
    const audio = (transcript: string): PartInit => ({ kind: { case: "audio", value: { id: "a", transcript } } });
    expect((inputOf(HI, assistant(audio("Hello")), HI) as object[])[1]).toMatchObject({ content: "Hello" });
    expect(refusalOf({ messages: [HI, assistant(audio("")), HI] })).toContain("messages[1].parts[0]: ");
    const file: PartInit = { kind: { case: "file", value: { source: { case: "id", value: "file_1" } } } };
    expect(refusalOf({ messages: [HI, assistant(file), HI] })).toContain("an assistant message cannot hold a file");
  });
});
