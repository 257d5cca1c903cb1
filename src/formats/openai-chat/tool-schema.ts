import { z } from "zod";
import { MAX_TOOLS, NAME } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { cacheMark } from "./message-schema.ts";

/* Schemas of tools, tool choice and response formats. See `schema.ts`. */

const name = field(z.string(), "1 to 64 letters, digits, `_` or `-`.", { pattern: NAME.source });
const chosen = field(z.string(), "Its name, one of `tools`.");
const schemaOf = (description: string) => optional(z.record(z.string(), z.unknown()), description);
const isStrict = optional(z.boolean(), "Whether the provider must enforce the schema exactly.");

const definedFunction = z.looseObject({
  name,
  description: optional(z.string(), "What it does and when to call it, told to the model."),
  parameters: schemaOf("The JSON schema of its arguments. Without it, it takes none."),
  strict: isStrict,
});
export const functionTool = field(
  z.looseObject({
    type: z.literal("function"),
    function: field(definedFunction, "The function."),
    cache_control: cacheMark,
  }),
  "A function that the model may call.",
);

const definedTool = z.looseObject({
  name,
  description: optional(z.string(), "What it does, told to the model."),
  format: field(z.unknown().optional(), "The input’s format in the OpenAI dialect. Without it, any text."),
});
export const customTool = field(
  z.looseObject({ type: z.literal("custom"), custom: field(definedTool, "The tool.") }),
  "A tool with free-form input. Where the provider has no such tools, it is a function with one text.",
);
export const tool = z.discriminatedUnion("type", [functionTool, customTool]);

export const namedFunction = field(
  z.looseObject({ type: z.literal("function"), function: field(z.looseObject({ name: chosen }), "The function.") }),
  "Exactly this function.",
);
export const namedCustom = field(
  z.looseObject({ type: z.literal("custom"), custom: field(z.looseObject({ name: chosen }), "The tool.") }),
  "Exactly this custom tool.",
);

const allowed = z.looseObject({
  mode: field(z.enum(["auto", "required"]), "`required`: at least one of them is called."),
  tools: field(z.array(z.union([namedFunction, namedCustom])).max(MAX_TOOLS), "The tools that may be called."),
});
export const allowedTools = field(
  z.looseObject({
    type: z.literal("allowed_tools"),
    allowed_tools: field(allowed, "Which, and whether one must be called."),
  }),
  "Some of the tools.",
);

export const toolChoice = z.union([z.enum(["none", "auto", "required"]), namedFunction, namedCustom, allowedTools]);

export const textFormat = field(z.looseObject({ type: z.literal("text") }), "Free text.");
export const jsonObjectFormat = field(z.looseObject({ type: z.literal("json_object") }), "Any JSON object.");
const jsonSchema = z.looseObject({
  name,
  description: optional(z.string(), "What the object is for, told to the model."),
  schema: schemaOf("The JSON schema, which is an object."),
  strict: isStrict,
});
export const jsonSchemaFormat = field(
  z.looseObject({ type: z.literal("json_schema"), json_schema: field(jsonSchema, "The schema.") }),
  "JSON that satisfies a schema.",
);
export const responseFormat = z.discriminatedUnion("type", [textFormat, jsonObjectFormat, jsonSchemaFormat]);
