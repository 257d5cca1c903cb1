import { z } from "zod";
import { MAX_PARTS } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";

const STATE = "State of the provider; send it back unchanged, or not at all.";

/* Schemas of messages and their parts. See `schema.ts`. */

const text = (description: string) => field(z.string(), description);
const optionalText = (description: string) => optional(z.string(), description);

export const cacheControl = field(
  z.looseObject({
    type: optionalText("`ephemeral`."),
    ttl: optionalText("How long to keep it, such as `5m` or `1h`; the provider’s default without it."),
  }),
  "The end of a prefix worth caching.",
);
export const cacheMark = optional(
  cacheControl,
  "Marks this as the end of a prefix worth caching, for providers that are told so.",
);

export const thoughtSignature = field(
  z.looseObject({
    google: optional(z.looseObject({ thought_signature: optionalText(STATE) }), "Of Google’s models."),
  }),
  "State of a provider where its own compatible endpoint puts it.",
);
const state = optional(thoughtSignature, STATE);

export const textPart = field(
  z.looseObject({ type: z.literal("text"), text: text("The text."), cache_control: cacheMark }),
  "Text.",
);
export const refusalPart = field(
  z.looseObject({ type: z.literal("refusal"), refusal: text("The text.") }),
  "Text with which a model declined to answer.",
);

const picture = z.looseObject({
  url: text(
    "A data URL (`data:image/png;base64,…`), or an https address that the provider reads itself; the gateway fetches nothing.",
  ),
  detail: optional(z.enum(["auto", "low", "high", "original"]), "How closely the model should look."),
});
export const imagePart = field(
  z.looseObject({
    type: z.literal("image_url"),
    image_url: field(z.union([z.string(), picture]), "Where the picture is; its address alone, or an object."),
    cache_control: cacheMark,
    extra_content: state,
  }),
  "A picture.",
);

const recording = z.looseObject({
  data: field(z.string(), "In base64.", { contentEncoding: "base64" }),
  format: text("Such as `wav` or `mp3`."),
});
export const audioPart = field(
  z.looseObject({
    type: z.literal("input_audio"),
    input_audio: field(recording, "The recording."),
    cache_control: cacheMark,
  }),
  "A recording.",
);

const file = z.looseObject({
  filename: optionalText("Its name."),
  file_data: optionalText("Its content: a data URL, or base64."),
  file_id: optionalText("The ID of an uploaded file, for providers of the OpenAI dialect."),
});
export const filePart = field(
  z.looseObject({
    type: z.literal("file"),
    file: field(file, "The document, by its content or its ID."),
    cache_control: cacheMark,
  }),
  "A document.",
);

export const part = field(
  z.discriminatedUnion("type", [textPart, imagePart, audioPart, filePart, refusalPart]),
  "A piece of a message.",
);

const calledFunction = z.looseObject({
  name: text("The function’s name."),
  arguments: text("Its arguments as JSON text."),
});
export const functionCall = field(
  z.looseObject({
    id: text("The call’s ID. The message with its result repeats it."),
    type: z.literal("function"),
    function: field(calledFunction, "What is called."),
    extra_content: state,
  }),
  "A call of a function by the model.",
);
const calledTool = z.looseObject({ name: text("The tool’s name."), input: text("Its input.") });
export const customCall = field(
  z.looseObject({
    id: text("The call’s ID."),
    type: z.literal("custom"),
    custom: field(calledTool, "What is called."),
  }),
  "A call of a tool with free-form input.",
);
const toolCall = z.discriminatedUnion("type", [functionCall, customCall]);

const position = z.looseObject({
  text: optional(z.int(), "How many UTF-16 units of text came before it."),
  tools: optional(z.int(), "How many tool calls came before it."),
});
export const thinkingBlock = field(
  z.looseObject({
    type: field(
      z.enum(["thinking", "redacted_thinking"]),
      "`redacted_thinking`: encrypted, only the provider can read it.",
    ),
    thinking: optionalText("The reasoning as text."),
    signature: optionalText("What proves that it is the model’s own."),
    data: optionalText("Of redacted reasoning: all there is."),
    at: optional(position, "Where it stood in the answer; at its beginning without it."),
  }),
  "A piece of a model’s reasoning. Send it back unchanged, or not at all.",
);

export const message = field(
  z.looseObject({
    role: field(
      z.enum(["system", "developer", "user", "assistant", "tool"]),
      "Who speaks. `developer` is the same as `system`.",
    ),
    content: optional(
      z.union([z.string(), z.array(part).max(MAX_PARTS)]),
      "What is said: a text, or parts. System messages hold text; assistant messages may have none when they call tools.",
    ),
    name: optionalText("A name for the speaker. Providers without one ignore it."),
    refusal: optionalText("Assistant messages: why the model declined to answer."),
    tool_calls: optional(
      z.array(toolCall).max(MAX_PARTS),
      "Assistant messages: the tools that were called. A tool message must follow for each.",
    ),
    tool_call_id: optionalText("Tool messages, required there: the ID of the call that this answers."),
    audio: optional(
      z.looseObject({ id: text("The provider’s ID of it.") }),
      "Assistant messages: speech of an earlier answer.",
    ),
    reasoning_content: optionalText("Assistant messages: the model’s reasoning as text."),
    thinking_blocks: optional(
      z.array(thinkingBlock).max(MAX_PARTS),
      "Assistant messages: reasoning with what proves it. Send it back to let the model go on from it.",
    ),
    extra_content: state,
    images: optional(z.array(imagePart).max(MAX_PARTS), "Assistant messages: pictures of an earlier streamed answer."),
    annotations: field(z.unknown().optional(), "About an earlier answer; accepted and ignored."),
    cache_control: cacheMark,
  }),
  "One turn of a conversation. The message of an answer can be sent back as it came.",
);
