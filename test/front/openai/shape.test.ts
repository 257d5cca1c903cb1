import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { chatRequest } from "../../../src/front/openai/schema.ts";
import { toShapeFailure } from "../../../src/front/openai/shape-failure.ts";
import { readShape } from "../../../src/front/openai/shape.ts";
import { REQUEST_SAMPLES } from "../../compatibility/request-samples.ts";

const CALLS = [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }];

/** What the schema of the whole request says, which names every message's every field. */
function readWhole(json: unknown): unknown {
  const { success, data, error } = chatRequest.safeParse(json);
  return success ? data : toShapeFailure(error).violations;
}

function read(json: unknown): unknown {
  try {
    return readShape(json);
  } catch (reason) {
    if (reason instanceof Failure) return reason.violations;
    throw reason;
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
    ["with keys that nobody knows", { role: "user", content: "Hi", weight: 1, toString: 2 }],
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
    ["a tool with keys that nobody knows", { tools: [{ ...tool, weight: 1 }] }],
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

  it("is read as its schema reads it: parameters with a key that objects inherit by", () => {
    const text = (key: string): string =>
      `{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"a":1,"${key}":{}}}}]}`;
    for (const key of ["__proto__", "constructor", "b"]) {
      expect(JSON.stringify(read(JSON.parse(text(key))))).toBe(JSON.stringify(readWhole(JSON.parse(text(key)))));
    }
  });

  it("is read as its schema reads it: more messages than are taken", () => {
    const json = { model: "m", messages: Array.from({ length: 2001 }, () => ({ role: "user", content: "Hi" })) };
    expect(read(json)).toEqual(readWhole(json));
  });
});
