import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolChoiceSchema, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import {
  assistant,
  effort,
  PARIS,
  request,
  TIME,
  tool,
  toolResult,
  user,
  WEATHER,
  WEATHER_SCHEMA,
} from "./builders.ts";
import { budgetModel } from "./model.ts";
import { bodyOf, translate } from "./translating.ts";

describe("tools", () => {
  const choose = (toolChoice: MessageInitShape<typeof ToolChoiceSchema>): unknown =>
    bodyOf(request({ tools: [WEATHER, TIME], toolChoice: create(ToolChoiceSchema, toolChoice) }));

  it("says which tools to call", () => {
    expect(choose({ choice: { case: "mode", value: ToolMode.AUTO } })).not.toHaveProperty("tool_choice");
    expect(choose({ choice: { case: "mode", value: ToolMode.NONE } })).toMatchObject({
      tool_choice: { type: "none" },
      tools: [{}, {}],
    });
    expect(choose({ choice: { case: "mode", value: ToolMode.REQUIRED } })).toMatchObject({
      tool_choice: { type: "any" },
    });
    expect(choose({ choice: { case: "function", value: "get_time" } })).toMatchObject({
      tool_choice: { type: "tool", name: "get_time" },
    });
    const allowed = choose({ choice: { case: "allowed", value: { mode: ToolMode.REQUIRED, names: ["get_time"] } } });
    expect(allowed).toMatchObject({ tools: [{ name: "get_time" }], tool_choice: { type: "any" } });
  });

  it("forbids parallel calls also where nothing else is chosen", () => {
    expect(bodyOf(request({ tools: [WEATHER], parallelToolCalls: false }))).toMatchObject({
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    });
  });

  it("trap 62: drops what belongs to tools when there are none", () => {
    const body = bodyOf(
      request({ parallelToolCalls: false, toolChoice: { choice: { case: "mode", value: ToolMode.NONE } } }),
    );
    expect(Object.keys(body).toSorted()).toEqual(["max_tokens", "messages", "model"]);
  });

  it("trap 53: declares the tools of earlier calls when the request has none", () => {
    const messages = [user("a"), assistant(undefined, { calls: [PARIS] }), toolResult(PARIS.id, "18C")];
    expect(bodyOf(request({ messages }))).toMatchObject({
      tools: [{ name: "get_weather", input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "none" },
    });
  });

  it.each([
    ["none", undefined, { type: "object", properties: {} }],
    ["an empty schema", {}, { type: "object", properties: {} }],
    ["a schema without a type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
  ])("trap 65: completes the arguments of a tool with %s", (_, parameters, expected) => {
    expect(bodyOf(request({ tools: [tool("f", parameters)] }))).toMatchObject({ tools: [{ input_schema: expected }] });
  });

  it("enforces a strict tool whose schema can be enforced", () => {
    expect(bodyOf(request({ tools: [tool("f", WEATHER_SCHEMA, { strict: true })] }))).toMatchObject({
      tools: [{ strict: true }],
    });
  });

  it("trap 63: stops manual reasoning when a tool is forced", () => {
    const forced = request({
      tools: [WEATHER],
      maxOutputTokens: 4000,
      reasoning: effort(ReasoningEffort.HIGH),
      toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } },
    });
    expect(bodyOf(forced)).toMatchObject({ thinking: { type: "disabled" }, tool_choice: { type: "any" } });
    expect(omittedOf(translate(forced, budgetModel()))).toEqual(["reasoning.effort"]);
  });
});
