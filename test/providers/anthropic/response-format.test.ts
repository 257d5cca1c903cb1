import { describe, expect, it } from "vitest";
import { request, system, user } from "./builders.ts";
import { budgetModel } from "./model.ts";
import { bodyOf } from "./translating.ts";

describe("JSON answers", () => {
  it("trap 68: asks for a JSON object in words", () => {
    const body = bodyOf(
      request({ messages: [system("a"), user("b")], responseFormat: { format: { case: "jsonObject", value: {} } } }),
    );
    expect(body["system"]).toMatchObject([{ text: "a" }, { text: expect.stringContaining("JSON object") as string }]);
  });

  it("asks for a schema in words where the model has no mode for it", () => {
    const value = { name: "a", schemaJson: '{"type":"object","maxProperties":3}' };
    const body = bodyOf(
      request({ responseFormat: { format: { case: "jsonSchema", value } } }),
      budgetModel({ jsonSchema: false }),
    );
    expect(body).not.toHaveProperty("output_config");
    expect(JSON.stringify(body["system"])).toContain("maxProperties");
  });

  it("trap 64: brings a schema into the form that is enforced", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: {
        when: { type: "string", format: "date-time", minLength: 3, description: "Then" },
        odd: { type: "string", format: "regex" },
        list: { type: "array", items: { $ref: "#/$defs/item" }, minItems: 2 },
        any: true,
        either: { oneOf: [{ const: 1 }, { type: "object", additionalProperties: true }] },
      },
      $defs: { item: { type: "object", properties: {}, additionalProperties: { type: "string" } } },
    };
    const value = { name: "a", description: "The answer", schemaJson: JSON.stringify(schema) };
    const { output_config } = bodyOf(request({ responseFormat: { format: { case: "jsonSchema", value } } }));
    expect(output_config).toEqual({
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          description: "The answer",
          additionalProperties: false,
          properties: {
            when: { type: "string", format: "date-time", description: "Then\nminLength: 3" },
            odd: { type: "string", description: 'format: "regex"' },
            list: { type: "array", items: { $ref: "#/$defs/item" }, description: "minItems: 2" },
            any: {},
            either: { anyOf: [{ const: 1 }, { type: "object", additionalProperties: false }] },
          },
          $defs: {
            item: {
              type: "object",
              properties: {},
              additionalProperties: false,
              description: 'additionalProperties: {"type":"string"}',
            },
          },
        },
      },
    });
  });
});
