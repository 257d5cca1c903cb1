import type { JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import { F, ask, body, config, system, translate, type Fields } from "./ask.ts";
import { flash, older } from "./model.ts";

describe("tools", () => {
  const choice = (toolChoice: JsonValue, model?: UpstreamModel): unknown =>
    body({ tools: [F], toolChoice }, model).toolConfig;
  const mode = (functionCallingConfig: unknown): unknown => ({ functionCallingConfig });

  it.each<[JsonValue, unknown]>([
    [{ mode: "TOOL_MODE_AUTO" }, undefined],
    [{ mode: "TOOL_MODE_NONE" }, mode({ mode: "NONE" })],
    [{ mode: "TOOL_MODE_REQUIRED" }, mode({ mode: "ANY" })],
    [{ function: "f" }, mode({ mode: "ANY", allowedFunctionNames: ["f"] })],
    [{ allowed: { mode: "TOOL_MODE_REQUIRED", names: ["f"] } }, mode({ mode: "ANY", allowedFunctionNames: ["f"] })],
  ])("choice %j is sent as the provider's mode", (toolChoice, sent) => {
    expect(choice(toolChoice)).toEqual(sent);
  });

  it("trap 67: allowed tools never go with AUTO", () => {
    const allowed = { allowed: { mode: "TOOL_MODE_AUTO", names: ["f"] } };
    expect(choice(allowed)).toEqual(mode({ mode: "VALIDATED", allowedFunctionNames: ["f"] }));
  });

  it("trap 63: a forced call on a model that cannot be forced is left to it, and listed", () => {
    const free = flash({ forcedTools: false });
    const required = { tools: [F], toolChoice: { mode: "TOOL_MODE_REQUIRED" } };
    expect(body(required, free).toolConfig).toBeUndefined();
    expect(omittedOf(translate(required, free))).toEqual(["tool_choice"]);
    expect(choice({ function: "f" }, free)).toEqual(mode({ mode: "VALIDATED", allowedFunctionNames: ["f"] }));
  });

  it("strict functions are validated", () => {
    const strict = { function: { name: "f", strict: true } };
    expect(body({ tools: [F, strict] }).toolConfig).toEqual(mode({ mode: "VALIDATED" }));
    expect(omittedOf(translate({ tools: [strict] }))).toEqual([]);
  });

  it("trap 62: a choice without tools is nothing", () => {
    const sent = body({ toolChoice: { mode: "TOOL_MODE_REQUIRED" } });
    expect(Object.keys(sent)).toEqual(["contents"]);
  });

  it("trap 64 and 65: schemas go as they are, empty ones not at all", () => {
    const schema = { $schema: "x", type: "object", properties: { a: { const: 1 } }, additionalProperties: false };
    const tools = [schema, {}].map((each) => ({ function: { name: "f", parametersJson: JSON.stringify(each) } }));
    expect(body({ tools: [...tools, F] }).tools).toEqual([
      { functionDeclarations: [{ name: "f", parametersJsonSchema: schema }, { name: "f" }, { name: "f" }] },
    ]);
  });

  it("a model without tools gets none", () => {
    expect(omittedOf(translate({ tools: [F] }, flash({ tools: false })))).toEqual(["tools"]);
  });

  it.each<[string, JsonValue, string]>([
    ["a custom tool", { custom: { name: "c" } }, "tools[0]"],
    ["trap 66: a name it does not take", { function: { name: "1st" } }, "tools[0].function.name"],
    ["a schema that is none", { function: { name: "f", parametersJson: "[]" } }, "tools[0].function.parameters_json"],
  ])("refuses %s", (_, tool, param) => {
    expect(() => translate({ tools: [tool] })).toThrow(
      expect.objectContaining({ code: "invalid_request", param }) as Error,
    );
  });

  it("refuses the choice of a custom tool", () => {
    expect(() => translate({ tools: [F], toolChoice: { custom: "c" } })).toThrow("tool_choice");
  });
});

describe("structured output", () => {
  const json = { responseMimeType: "application/json" };
  const schemaFormat = (schema: object): Fields => ({
    responseFormat: { jsonSchema: { name: "s", schemaJson: JSON.stringify(schema), strict: true } },
  });

  it("any object is the provider's JSON mode", () => {
    expect(config({ responseFormat: { jsonObject: {} } })).toEqual(json);
  });

  it("a schema keeps what the provider enforces, rewrites what it can, and lists the rest", () => {
    const schema = {
      $schema: "x",
      type: "object",
      properties: {
        kind: { const: "a" },
        size: { type: "integer", minimum: 1, multipleOf: 2 },
        ref: { $ref: "#/definitions/n", description: "d" },
        one: { allOf: [{ type: "string", pattern: "x" }], title: "t" },
        any: { anyOf: [{ type: "string" }, { type: "null", default: null }] },
        list: { type: "array", items: { type: "string", minLength: 1 } },
        pattern: { type: "string" },
      },
      additionalProperties: false,
      definitions: { n: { type: "number", exclusiveMinimum: 0 } },
    };
    expect(config(schemaFormat(schema))).toEqual({
      ...json,
      responseJsonSchema: {
        type: "object",
        properties: {
          kind: { enum: ["a"] },
          size: { type: "integer", minimum: 1 },
          ref: { $ref: "#/$defs/n" },
          one: { type: "string", title: "t" },
          any: { anyOf: [{ type: "string" }, { type: "null" }] },
          list: { type: "array", items: { type: "string" } },
          pattern: { type: "string" },
        },
        additionalProperties: false,
        $defs: { n: { type: "number" } },
      },
    });
    const at = "response_format.json_schema.schema_json";
    expect(omittedOf(translate(schemaFormat(schema)))).toEqual([
      `${at}.properties.size.multipleOf`,
      `${at}.properties.one.allOf[0].pattern`,
      `${at}.properties.list.items.minLength`,
      `${at}.definitions.n.exclusiveMinimum`,
    ]);
  });

  it("a model without schemas gets them in words and a JSON mode", () => {
    const { generationConfig, systemInstruction } = body(
      schemaFormat({ type: "object" }),
      flash({ jsonSchema: false }),
    );
    expect(generationConfig).toEqual(json);
    expect(systemInstruction?.parts).toEqual([{ text: expect.stringContaining('{"type":"object"}') as string }]);
    expect(omittedOf(translate(schemaFormat({ type: "object" }), flash({ jsonSchema: false })))).toEqual([
      "response_format.json_schema",
    ]);
  });

  it("older models cannot have tools and a JSON mode at once, and get the form in words only", () => {
    const both = { tools: [F], messages: [system("a"), ask("b")], ...schemaFormat({ type: "object" }) };
    expect(body(both, older()).generationConfig).toBeUndefined();
    expect(body(both, older()).systemInstruction?.parts).toHaveLength(2);
    expect(omittedOf(translate(both, older()))).toEqual(["response_format.json_schema"]);
    expect(config(both, flash())).toMatchObject({ responseJsonSchema: { type: "object" } });
  });

  it("refuses a schema that is none", () => {
    const responseFormat = { jsonSchema: { name: "s", schemaJson: "5" } };
    expect(() => translate({ responseFormat })).toThrow("response_format.json_schema.schema_json");
  });
});
