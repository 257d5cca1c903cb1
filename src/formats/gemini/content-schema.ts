import { z } from "zod";
import { MAX_PARTS } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";

/* Schemas of contents and their parts. See `schema.ts`. */

const text = (description: string) => field(z.string(), description);
const optionalText = (description: string) => optional(z.string(), description);
/** Keys are the caller's own: they are never renamed. */
const ownJson = (description: string) => optional(z.record(z.string(), z.unknown()), description);

const inlineData = z.looseObject({
  mimeType: text("Such as `image/png`, `audio/wav`, `video/mp4` or `application/pdf`."),
  data: field(z.string(), "In base64, of either alphabet.", { contentEncoding: "base64" }),
});
const fileData = z.looseObject({
  fileUri: text("An https address that the provider reads itself; the gateway fetches nothing."),
  mimeType: optionalText("Of the file."),
});

const functionCall = z.looseObject({
  id: optionalText("The call’s ID. Its response repeats it."),
  name: text("The function’s name."),
  args: ownJson("Its arguments."),
});
const responsePart = z.looseObject({
  inlineData: optional(inlineData, "A picture or another file."),
  fileData: optional(fileData, "The same by its address."),
});
const functionResponse = z.looseObject({
  id: optionalText("The call’s ID. Without it, or with an unknown one, the name and the order count."),
  name: optionalText("The function’s name."),
  response: ownJson("What the function returned."),
  parts: optional(z.array(responsePart).max(MAX_PARTS), "Pictures and files that it returned."),
});

const videoMetadata = z.looseObject({
  startOffset: optionalText("Where to begin to look, such as `12.5s`."),
  endOffset: optionalText("Where to stop."),
  fps: optional(z.number(), "How many pictures a second to look at."),
});

export const part = field(
  z.looseObject({
    text: optionalText("Text."),
    thought: optional(z.boolean(), "Whether this is a thought of the model."),
    thoughtSignature: optionalText("State of the provider; send it back unchanged, or not at all."),
    inlineData: optional(inlineData, "A picture, a recording, a video or a document."),
    fileData: optional(fileData, "The same by its address."),
    functionCall: optional(functionCall, "A call of a function by the model."),
    functionResponse: optional(functionResponse, "The result of a call."),
    videoMetadata: optional(videoMetadata, "Which pictures of a video the model looks at."),
  }),
  "A piece of a turn: one of the fields. Parts of other kinds, such as `executableCode`, go to providers of the Gemini dialect as they are.",
);

const parts = optional(z.array(part).max(MAX_PARTS), "What is said and done, in order.");

export const content = field(
  z.looseObject({
    role: optional(z.enum(["user", "model", "function"]), "Who speaks. `function` is the same as `user`.", {
      default: "user",
    }),
    parts,
  }),
  "One turn of a conversation. The content of an answer can be sent back as it came.",
);

/** The system instruction. SDKs send a role in it, which has no meaning. */
export const systemInstruction = z.looseObject({
  role: optional(z.string(), "Ignored."),
  parts,
});

export type GeminiContent = z.output<typeof content>;
export type GeminiPart = z.output<typeof part>;
export type SystemInstruction = z.output<typeof systemInstruction>;
export type InlineData = z.output<typeof inlineData>;
export type FileData = z.output<typeof fileData>;
export type FunctionResponse = z.output<typeof functionResponse>;
