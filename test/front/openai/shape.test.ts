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

  it("is read as its schema reads it: more messages than are taken", () => {
    const json = { model: "m", messages: Array.from({ length: 2001 }, () => ({ role: "user", content: "Hi" })) };
    expect(read(json)).toEqual(readWhole(json));
  });
});
