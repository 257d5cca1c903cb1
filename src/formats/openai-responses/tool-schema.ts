import { z } from "zod";
import { MAX_TOOLS, NAME } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { openUnion } from "../shape.ts";

/* Schemas of tools, tool choice and response formats. They are flat; chat completions nest them. See `schema.ts`. */

const name = field(z.string(), "1 to 64 letters, digits, `_` or `-`.", { pattern: NAME.source });
const description = optional(z.string(), "What it does and when to call it, told to the model.");
const schemaOf = (about: string) => optional(z.record(z.string(), z.unknown()), about);
const isStrict = optional(z.boolean(), "Whether the provider must enforce the schema exactly.");

export const functionTool = field(
  z.looseObject({
    type: z.literal("function"),
    name,
    description,
    parameters: schemaOf("The JSON schema of its arguments. Without it, it takes none."),
    strict: isStrict,
  }),
  "A function that the model may call.",
);
export const customTool = field(
  z.looseObject({
    type: z.literal("custom"),
    name,
    description,
    format: field(z.unknown().optional(), "The input’s format: text, or a grammar. Without it, any text."),
  }),
  "A tool with free-form input.",
);
export const KNOWN_FUNCTION_KEYS: ReadonlySet<string> = new Set(Object.keys(functionTool.shape));

const inner = openUnion(field(z.discriminatedUnion("type", [functionTool, customTool]), "A tool of a namespace."), {
  function: functionTool,
  custom: customTool,
});
export const namespaceTool = field(
  z.looseObject({
    type: z.literal("namespace"),
    name: field(z.string(), "The namespace’s name."),
    description: optional(z.string(), "What its tools are for."),
    tools: field(z.array(inner).max(MAX_TOOLS), "Its tools."),
  }),
  "Tools with a common name. Providers are told `<namespace>__<name>`; the answer has both names apart.",
);
/** Tools of other types are run by OpenAI’s servers, or are known only to its models. */
export const tool = openUnion(
  field(
    z.discriminatedUnion("type", [functionTool, customTool, namespaceTool]),
    "A tool. Tools of other types, such as `web_search`, go to providers of this API as they are, for keys with the option `provider_tools`. For others they are left out, and listed in `parley.omitted`; they are refused when nothing else could be called.",
  ),
  { function: functionTool, custom: customTool, namespace: namespaceTool },
);
export type GivenTool = z.output<typeof tool>;
export type NamedTool = z.output<typeof inner>;

const chosen = z.looseObject({
  type: field(z.string(), "The tool’s type."),
  name: optional(z.string(), "The tool’s name, one of `tools`."),
  namespace: optional(z.string(), "The name of its namespace."),
});
export const namedTool = field(
  z.looseObject({
    ...chosen.shape,
    type: field(z.string(), "`function`, `custom`, or `allowed_tools` for some of the tools."),
    mode: optional(z.enum(["auto", "required"]), "Of `allowed_tools`: whether one of them must be called."),
    tools: optional(z.array(chosen).max(MAX_TOOLS), "Of `allowed_tools`: the tools that may be called."),
  }),
  "A tool, or some of the tools.",
);
export const toolChoice = z.union([z.enum(["none", "auto", "required"]), namedTool]);
export type GivenChoice = z.output<typeof toolChoice>;

const textFormat = field(z.looseObject({ type: z.literal("text") }), "Free text.");
const jsonObjectFormat = field(z.looseObject({ type: z.literal("json_object") }), "Any JSON object.");
const jsonSchemaFormat = field(
  z.looseObject({
    type: z.literal("json_schema"),
    name,
    description: optional(z.string(), "What the object is for, told to the model."),
    schema: schemaOf("The JSON schema, which is an object."),
    strict: isStrict,
  }),
  "JSON that satisfies a schema.",
);
export const format = z.discriminatedUnion("type", [textFormat, jsonObjectFormat, jsonSchemaFormat]);
