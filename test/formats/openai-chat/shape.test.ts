import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { chatRequest } from "../../../src/formats/openai-chat/schema.ts";
import { readShape } from "../../../src/formats/openai-chat/request.ts";
import { writeTree } from "../../faults/fuzz/json-tree.ts";
import { Random } from "../../faults/fuzz/random.ts";
import { schemaBody } from "../../faults/fuzz/schema-bodies.ts";
import { REQUEST_SAMPLES } from "../../compatibility/request-samples.ts";

const CALLS = [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }];

/** What the schema's own parser makes of it; `undefined` when it refuses it. */
function readWhole(json: unknown): unknown {
  return chatRequest.safeParse(json).data;
}

function read(json: unknown): unknown {
  return wrongIn(json) === undefined ? readShape(json) : undefined;
}

/** What is said of it; `undefined` when it is read. */
function wrongIn(json: unknown): string[] | undefined {
  try {
    readShape(json);
    return undefined;
  } catch (reason) {
    if (!(reason instanceof Failure)) throw reason;
    return [reason.message, ...reason.violations.map(({ field, description }) => `${field} ${description}`)];
  }
}

describe("the shape of a request", () => {
  const requests = Object.entries(REQUEST_SAMPLES).flatMap(([name, { given, without }]) => [
    { name, json: { model: "m", messages: [{ role: "user", content: "Hi" }], ...without, ...given } },
  ]);

  it.each(requests)("is read as its schema reads it: $name", ({ json }) => {
    expect(read(json)).toEqual(readWhole(json));
  });

  it.each([
    ["plain", { role: "assistant", content: null, tool_calls: CALLS }],
    ["with unknown keys", { role: "user", content: "Hi", weight: 1, toString: 2 }],
    ["with a field of another role", { role: "user", content: "Hi", tool_calls: CALLS, thinking_blocks: [] }],
    ["with two wrong fields", { role: "nobody", content: 7 }],
    ["with wrong fields, known and less known", { role: "nobody", name: 7, content: [{ type: "text" }] }],
    ["of another type", 7],
    ["of a text", "Hi"],
    ["of a list", [{ role: "user" }]],
    ["of null", null],
  ])("is read as its schema reads it: a message %s", (_, message) => {
    for (const around of [{}, { temperature: "hot" }, { model: undefined }]) {
      const json = { model: "m", messages: [{ role: "user", content: "Hi" }, message], ...around };
      expect(read(json)).toEqual(readWhole(json));
    }
  });

  const tool = { type: "function", function: { name: "f", description: "d", parameters: {}, strict: true } };
  const called = { role: "assistant", content: "", tool_calls: CALLS };
  const result = { role: "tool", tool_call_id: "call_1", content: "r" };

  it.each([
    ["tools", { tools: [tool], tool_choice: "auto", parallel_tool_calls: false }],
    ["a tool with a name alone", { tools: [{ type: "function", function: { name: "f" } }] }],
    ["a tool without a name", { tools: [{ type: "function", function: {} }] }],
    ["a tool without a function", { tools: [{ type: "function" }] }],
    ["a tool that is none", { tools: [tool, 7, null] }],
    ["a tool of no kind", { tools: [{ ...tool, type: "toString" }] }],
    ["a tool with unknown keys", { tools: [{ ...tool, weight: 1 }] }],
    ["a tool with fields that are null", { tools: [{ type: "function", function: { name: "f", parameters: null } }] }],
    ["a tool with a cache mark", { tools: [{ ...tool, cache_control: { type: "ephemeral" } }] }],
    ["parameters that are a list", { tools: [{ type: "function", function: { name: "f", parameters: [] } }] }],
    ["parameters that are a text", { tools: [{ type: "function", function: { name: "f", parameters: "{}" } }] }],
    ["tools that are no list", { tools: { 0: tool } }],
    ["no tools", { tools: null, tool_choice: null }],
    ["a choice that is none", { tools: [tool], tool_choice: "any" }],
    ["a choice by name", { tools: [tool], tool_choice: { type: "function", function: { name: "f" } } }],
    ["a call and its result", { messages: [called, result] }],
    ["a call of a user", { messages: [{ ...called, role: "user" }] }],
    ["no calls", { messages: [{ ...called, tool_calls: [] }] }],
    ["calls that are null", { messages: [{ ...called, tool_calls: null }] }],
    ["a call without content", { messages: [{ role: "assistant", tool_calls: CALLS }] }],
    ["a call without an ID", { messages: [{ ...called, tool_calls: [{ ...CALLS[0], id: undefined }] }] }],
    ["a call without arguments", { messages: [{ ...called, tool_calls: [{ ...CALLS[0], function: { name: "f" } }] }] }],
    ["a call with wrong arguments", { messages: [{ ...called, tool_calls: [{ ...CALLS[0], function: 7 }] }] }],
    ["a call with a signature", { messages: [{ ...called, tool_calls: [{ ...CALLS[0], extra_content: {} }] }] }],
    ["a result with calls", { messages: [{ ...result, tool_calls: CALLS }] }],
    ["a result without content", { messages: [{ ...result, content: null }] }],
    ["a result of nothing", { messages: [{ role: "tool", content: "r" }] }],
    ["a text with the ID of a call", { messages: [{ ...result, role: "user" }] }],
  ])("is read as its schema reads it: %s", (_, given) => {
    const text = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], ...given });
    expect(read(JSON.parse(text))).toEqual(readWhole(JSON.parse(text)));
  });

  it("keeps a key that objects inherit by, as any other", () => {
    const text = (key: string): string =>
      `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":1,"${key}":{}}}}]}`;
    for (const key of ["__proto__", "constructor", "b"]) {
      expect(JSON.stringify(read(JSON.parse(text(key))))).toBe(text(key));
    }
  });

  it("is read exactly when its schema reads it", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const text = writeTree(schemaBody("m", "hi", new Random(seed)));
      // Its schema drops this key from records, whatever it holds.
      if (text.includes("__proto__")) continue;
      const json: unknown = JSON.parse(text);
      const expected = chatRequest.safeParse(json);
      expect([seed, wrongIn(json) === undefined]).toEqual([seed, expected.success]);
      expect(read(json)).toEqual(expected.data);
    }
  });

  const message = (given: object) => ({ messages: [{ role: "user", ...given }] });

  it.each<[string, unknown, string[]]>([
    ["a list", [], ["The request body must be an object."]],
    ["model is required", { model: undefined }, ["model: is required."]],
    ["two wrong fields", { n: 1.5, seed: 1e300 }, ["n: must be a whole number.", "seed is out of range"]],
    ["messages that are none", { messages: {} }, ["messages: must be a list."]],
    ["no role", { messages: [{}] }, ["messages[0].role: must be system, developer, user, assistant or tool."]],
    ["content of no kind", message({ content: 7 }), ["messages[0].content: must be text or a list."]],
    [
      "wrong parts",
      message({ content: [{ type: "text" }, 7] }),
      ["messages[0].content[0].text: is required.", "messages[0].content[1] must be an object"],
    ],
    [
      "a part of an unknown kind",
      message({ content: [{}] }),
      ["messages[0].content[0].type: must be text, image_url, input_audio, file or refusal."],
    ],
    [
      "an image without its address",
      message({ content: [{ type: "image_url", image_url: 7 }] }),
      ["messages[0].content[0].image_url: must be text or an object."],
    ],
    ["a choice that is none", { tool_choice: "any" }, ["tool_choice: must be none, auto or required or an object."]],
    ["half a choice", { tool_choice: { type: "function" } }, ["tool_choice.function: is required."]],
    ["a wrong label", { metadata: { ["k".repeat(1000)]: 7 } }, [`metadata.${"k".repeat(64)}: must be text.`]],
  ])("says what is wrong: %s", (_, given, [first, ...others]) => {
    const json = Array.isArray(given) ? given : { model: "m", messages: [{ role: "user" }], ...(given as object) };
    const [said, , ...more] = wrongIn(json) ?? [];
    expect([said, ...more]).toEqual([first, ...others]);
  });

  const call = CALLS[0];
  const block = { type: "thinking", thinking: "hm" };
  const named = { type: "function", function: { name: "f" } };

  const listOf = (count: number, element: unknown): unknown[] => Array.from({ length: count }, () => element);

  it.each<[string, number, (count: number) => object]>([
    ["messages[0].content", 4000, (count) => message({ content: listOf(count, { type: "text", text: "" }) })],
    ["messages[0].tool_calls", 4000, (count) => message({ tool_calls: listOf(count, call) })],
    ["messages[0].thinking_blocks", 4000, (count) => message({ thinking_blocks: listOf(count, block) })],
    ["tools", 2000, (count) => ({ tools: listOf(count, named) })],
  ])("holds a bounded number of %s", (field, most, given) => {
    const json = (count: number) => ({ model: "m", messages: [{ role: "user" }], ...given(count) });
    expect(wrongIn(json(most))).toBeUndefined();
    expect(wrongIn(json(most + 1))?.[0]).toBe(`${field}: must hold at most ${most} entries.`);
  });
});
