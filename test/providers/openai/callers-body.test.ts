import fc from "fast-check";
import { expect, it } from "vitest";
import type { CallersBody } from "../../../src/core/provider.ts";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { toOpenAiRequest } from "../../../src/providers/openai/request.ts";
import { modelThat } from "./model.ts";

type Fields = Readonly<Record<string, unknown>>;

const TEXT = fc.constantFrom("", "a", "Look.", "é\u0000");
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof(fc.constantFrom(null, undefined), value, value);
/** An object with some of these fields in any order, and perhaps one that the contract does not have. */
const fields = (known: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Fields> =>
  fc
    .tuple(
      fc.record(known),
      fc.array(fc.constantFrom("constructor", "toString", "new_field", "max_uses"), { maxLength: 1 }),
      fc.nat(),
    )
    .map(([values, names, turn]) => {
      const all = [...Object.entries(values), ...names.map((name): [string, unknown] => [name, { cost: 1 }])];
      const at = turn % all.length;
      return Object.fromEntries([...all.slice(at), ...all.slice(0, at)].filter(([, value]) => value !== undefined));
    });

const TEXT_PART = fields({ type: fc.constant("text"), text: TEXT });
const PICTURE = fields({
  type: fc.constant("image_url"),
  image_url: fields({
    url: fc.constantFrom("data:image/png;base64,iVBORw0KGgo=", "data:image/jpeg;base64,iVBORw0KGgo="),
    detail: maybe(fc.constantFrom("auto", "low")),
  }),
});
const CONTENT = fc.oneof(TEXT, fc.array(TEXT_PART, { maxLength: 2 }));
const CALL = fields({
  id: fc.constantFrom("c1", "c".repeat(60)),
  type: fc.constant("function"),
  function: fields({ name: fc.constant("f"), arguments: fc.constantFrom("", '{"a": 1}') }),
});
const MESSAGE = fc.oneof(
  fields({ role: fc.constantFrom("system", "developer"), content: CONTENT, name: maybe(TEXT) }),
  fields({
    role: fc.constant("user"),
    content: fc.oneof(CONTENT, fc.array(fc.oneof(TEXT_PART, PICTURE), { maxLength: 2 })),
  }),
  fields({
    role: fc.constant("assistant"),
    content: maybe(CONTENT),
    refusal: maybe(TEXT),
    tool_calls: maybe(fc.array(CALL, { minLength: 1, maxLength: 2 })),
    reasoning_content: maybe(TEXT),
    annotations: maybe(fc.constant([])),
    cache_control: maybe(fc.constant({ type: "ephemeral" })),
  }),
  fields({ role: fc.constant("tool"), tool_call_id: fc.constant("c1"), content: CONTENT }),
);
const TOOL = fields({
  type: fc.constant("function"),
  function: fields({
    name: fc.constant("f"),
    description: maybe(TEXT),
    parameters: maybe(fc.constant({ type: "object", properties: { a: { type: "string" } } })),
    strict: maybe(fc.boolean()),
  }),
});
const REQUEST = fields({
  model: fc.constant("m"),
  messages: fc.array(MESSAGE, { maxLength: 4 }),
  max_tokens: maybe(fc.constant(9)),
  max_completion_tokens: maybe(fc.constant(8)),
  temperature: maybe(fc.constantFrom(0, 1, 1.5)),
  n: maybe(fc.constantFrom(1, 2)),
  store: maybe(fc.boolean()),
  service_tier: maybe(fc.constantFrom("auto", "priority")),
  stop: maybe(fc.oneof(TEXT, fc.array(TEXT, { maxLength: 2 }))),
  stream_options: maybe(fields({ include_usage: maybe(fc.boolean()) })),
  tools: maybe(fc.array(TOOL, { maxLength: 2 })),
  tool_choice: maybe(fc.constantFrom("auto", "required", { type: "function", function: { name: "f" } })),
  parallel_tool_calls: maybe(fc.boolean()),
  response_format: maybe(
    fc.constantFrom(
      { type: "text" },
      { type: "json_object" },
      { type: "json_schema", json_schema: { name: "s", schema: {} } },
    ),
  ),
  prediction: maybe(fields({ type: fc.constant("content"), content: CONTENT })),
  logit_bias: maybe(fc.constantFrom({}, { "1": 2 })),
  web_search_options: maybe(fc.constant({})),
});
const MODEL = fc
  .record({
    contentParts: fc.boolean(),
    midConversationSystem: fc.boolean(),
    preservedReasoning: fc.boolean(),
    tools: fc.boolean(),
    forcedTools: fc.boolean(),
    jsonSchema: fc.boolean(),
    streamUsage: fc.boolean(),
    maxTemperature: fc.constantFrom(1, 2),
    maxTokensField: fc.constantFrom("max_tokens" as const, "max_completion_tokens" as const),
  })
  .map((capabilities) => modelThat(capabilities));

/** What a body says, in one of several ways to say it. */
function meaningOf(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) {
    const texts = value.map((part: Fields) => (part?.["type"] === "text" ? String(part["text"]) : undefined));
    if (key === "content" && texts.every((text) => text !== undefined)) return texts.join("") || null;
    return key === "stop" && value.length === 1 ? (value[0] as unknown) : value.map((each) => meaningOf(each));
  }
  if (key === "content" && value === "") return null;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, each]) => !isDefault(name, each))
      .map(([name, each]) => [name, meaningOf(each, name)]),
  );
}

function isDefault(name: string, value: unknown): boolean {
  const said = JSON.stringify([name, value]);
  return (
    ['["store",false]', '["n",1]', '["parallel_tool_calls",true]', '["description",""]'].includes(said) ||
    (name === "response_format" && (value as Fields)["type"] === "text")
  );
}

it("says what the translation says, in whatever words it came, and nothing else", () => {
  fc.assert(
    fc.property(REQUEST, MODEL, fc.constantFrom("whole" as const, "stream" as const), (json, model, mode) => {
      const read = readChatRequest(structuredClone(json));
      const translate = (callers?: CallersBody): unknown =>
        JSON.parse(toOpenAiRequest(read.request, model, { mode, callers }).body.toString());
      let translated: unknown;
      try {
        translated = translate();
      } catch {
        // The model does not have what is asked of it.
        return;
      }
      expect(meaningOf(translate(read.body))).toEqual(meaningOf(translated));
    }),
    { numRuns: 1_000 },
  );
});

it("has every field that its caller wrote, where all of them may be sent and nothing was changed", () => {
  fc.assert(
    fc.property(REQUEST, (json) => {
      const { request, body } = readChatRequest(structuredClone(json));
      const callers = { ...body, json: body.json };
      const model = modelThat({ preservedReasoning: false });
      const { isCallers, body: sent } = toOpenAiRequest(request, model, { mode: "whole", callers, others: true });
      const count = (text: string): number => text.split('{"cost":1}').length;
      const isWhole = count(sent.toString()) === count(JSON.stringify(json));
      expect(isWhole || isCallers !== true).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

/** What is sent of a request that also has these fields. */
function sentOf(more: Fields, others: boolean): Fields {
  const { request, body: callers } = readChatRequest({
    model: "m",
    messages: [{ role: "user", content: "Hi" }],
    ...more,
  });
  const { body } = toOpenAiRequest(request, modelThat({}), { mode: "whole", callers, others });
  return JSON.parse(body.toString()) as Fields;
}

it("leaves out a default with a field that the contract does not have", () => {
  expect(sentOf({ response_format: { type: "text" } }, false)).toHaveProperty("response_format", { type: "text" });
  for (const others of [false, true])
    expect(sentOf({ response_format: { type: "text", new_field: 1 } }, others)).not.toHaveProperty("response_format");
});

it("leaves out null of fields of the contract, also where other fields may be sent", () => {
  const { messages, tools, new_field } = sentOf(
    {
      messages: [
        { role: "user", content: "Hi", name: null, new_field: 1 },
        { role: "assistant", content: "Yes?", tool_calls: null },
        { role: "user", content: "Go on." },
      ],
      tools: [{ type: "function", function: { name: "f", parameters: null, strict: null, new_field: null } }],
      new_field: 3,
    },
    true,
  );
  expect([messages, tools, new_field]).toEqual([
    [
      { role: "user", content: "Hi", new_field: 1 },
      { role: "assistant", content: "Yes?" },
      { role: "user", content: "Go on." },
    ],
    [{ type: "function", function: { name: "f", new_field: null } }],
    3,
  ]);
});

it("has the caller's object of a voice, and its other fields where these may be sent", () => {
  const voiceOf = (voice: Fields, others: boolean): unknown => {
    const more = { modalities: ["text", "audio"], audio: { format: "wav", voice } };
    return (sentOf(more, others)["audio"] as Fields)["voice"];
  };
  expect(voiceOf({ id: "v" }, false)).toEqual({ id: "v" });
  expect(voiceOf({ id: "v", new_field: 1 }, false)).toEqual({ id: "v" });
  expect(voiceOf({ new_field: 1, id: "v" }, true)).toEqual({ new_field: 1, id: "v" });
});
