import { z } from "zod";
import { MAX_PARTS } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { openUnion } from "../shape.ts";

/* Schemas of the items of a conversation. See `schema.ts`. */

const text = (description: string) => field(z.string(), description);
const optionalText = (description: string) => optional(z.string(), description);

const STATE = "State of the provider; send it back unchanged, or not at all.";
const CALL_ID = "The call’s ID. The item with its result repeats it.";

export const inputText = field(
  z.looseObject({ type: z.literal(["input_text", "output_text", "text"]), text: text("The text.") }),
  "Text.",
);
const refusal = field(
  z.looseObject({ type: z.literal("refusal"), refusal: text("The text.") }),
  "Text with which a model declined to answer.",
);
export const inputImage = field(
  z.looseObject({
    type: z.literal("input_image"),
    image_url: optionalText(
      "A data URL (`data:image/png;base64,…`), or an https address that the provider reads itself; the gateway fetches nothing.",
    ),
    file_id: optionalText("Refused: the gateway keeps no files."),
    detail: optional(z.enum(["auto", "low", "high", "original"]), "How closely the model should look."),
  }),
  "A picture.",
);
export const inputFile = field(
  z.looseObject({
    type: z.literal("input_file"),
    filename: optionalText("Its name."),
    file_data: optionalText("Its content: a data URL, or base64."),
    file_url: optionalText("An https address that the provider reads itself."),
    file_id: optionalText("The ID of an uploaded file, for providers of the OpenAI dialect."),
  }),
  "A document.",
);
const recording = z.looseObject({
  data: field(z.string(), "In base64.", { contentEncoding: "base64" }),
  format: text("Such as `wav` or `mp3`."),
});
const inputAudio = field(
  z.looseObject({ type: z.literal("input_audio"), input_audio: field(recording, "The recording.") }),
  "A recording.",
);
const part = z.discriminatedUnion("type", [inputText, refusal, inputImage, inputFile, inputAudio]);
const content = z.union([z.string(), z.array(part).max(MAX_PARTS)]);

export const message = field(
  z.looseObject({
    type: optional(z.literal("message"), "May be left out."),
    role: field(z.enum(["user", "assistant", "system", "developer"]), "Who speaks."),
    content: field(content, "What is said: a text, or parts."),
  }),
  "A message of the user, of the application or of the model.",
);

export const functionCall = field(
  z.looseObject({
    type: z.literal("function_call"),
    call_id: text(CALL_ID),
    name: text("The function’s name."),
    namespace: optionalText("The name of the function’s namespace."),
    arguments: text("Its arguments as JSON text."),
  }),
  "A call of a function by the model.",
);
const ofOutput = {
  call_id: optionalText(
    "The call’s ID. Without it, and with a `name`, the output is context of the client, which providers of other APIs get as a message of the user.",
  ),
  name: optionalText("The name of the client’s own tool, without `call_id`."),
  namespace: optionalText("The name of that tool’s namespace."),
};
export const functionCallOutput = field(
  z.looseObject({
    type: z.literal("function_call_output"),
    ...ofOutput,
    output: field(content, "The result: a text, or parts."),
  }),
  "The result of a call of a function.",
);
export const customToolCall = field(
  z.looseObject({
    type: z.literal("custom_tool_call"),
    call_id: text(CALL_ID),
    name: text("The tool’s name."),
    namespace: optionalText("The name of the tool’s namespace."),
    input: text("Its input."),
  }),
  "A call of a tool with free-form input.",
);
export const customToolCallOutput = field(
  z.looseObject({
    type: z.literal("custom_tool_call_output"),
    ...ofOutput,
    output: field(content, "The result: a text, or parts."),
  }),
  "The result of a call of a tool with free-form input.",
);

const thought = z.looseObject({ text: optionalText("Text.") });
export const reasoning = field(
  z.looseObject({
    type: z.literal("reasoning"),
    summary: optional(z.array(thought).max(MAX_PARTS), "The reasoning as the provider shows it."),
    content: optional(z.array(thought).max(MAX_PARTS), "The reasoning itself, of other servers."),
    encrypted_content: optionalText(STATE),
  }),
  "A piece of a model’s reasoning. That of another server is left out, and listed in `parley.omitted`.",
);
export const imageGenerationCall = field(
  z.looseObject({
    type: z.literal("image_generation_call"),
    id: optionalText("The item’s ID."),
    result: optional(z.string(), "The picture in base64.", { contentEncoding: "base64" }),
  }),
  "A picture that the model made.",
);
export const itemReference = field(
  z.looseObject({ type: optional(z.literal("item_reference"), "May be left out."), id: text("The item’s ID.") }),
  "Refused: the gateway keeps no items.",
);

/** Schemas by type. */
const KINDS = {
  message,
  function_call: functionCall,
  function_call_output: functionCallOutput,
  custom_tool_call: customToolCall,
  custom_tool_call_output: customToolCallOutput,
  reasoning,
  image_generation_call: imageGenerationCall,
  item_reference: itemReference,
} as const;

/** The type of an item. Clients leave out the type of messages and references. */
export function typeOf({ type, role, content: said, id }: Readonly<Record<string, unknown>>): unknown {
  if (type != null) return type;
  return role === undefined && said === undefined && id !== undefined ? "item_reference" : "message";
}

/** Items of other types are native parts, see `items.ts`. */
export const item = openUnion(
  field(
    z.union([
      message,
      functionCall,
      functionCallOutput,
      customToolCall,
      customToolCallOutput,
      reasoning,
      imageGenerationCall,
      itemReference,
    ]),
    "An item of the conversation. Items of other types, such as `web_search_call` and `local_shell_call_output`, go to providers of this API as they are; for others they are left out, and listed in `parley.omitted`.",
  ),
  KINDS,
  typeOf,
);
export type Item = z.output<typeof item>;
export type Content = z.output<typeof content>;
export type ContentPart = z.output<typeof part>;
