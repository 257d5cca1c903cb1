import { z } from "zod";
import { MAX_FALLBACKS, MAX_INT32, MAX_PARTS, MAX_STOPS, MAX_TOOLS, RANGES } from "../../core/validate.ts";
import { content, systemInstruction } from "./content-schema.ts";
import { field, optional } from "../schema-field.ts";

/*
 * The shape of requests of Gemini clients, and the meaning of each field. Only types are checked here; core checks ranges and everything
 * that depends on a model. Unknown keys are kept; `request.ts` reports them. Every field may also be in snake case, see `spelling.ts`.
 */

const range = ([minimum, maximum]: readonly [number, number]) => ({ minimum, maximum });
const tokens = range([1, MAX_INT32]);
/** Keys are the caller's own: they are never renamed. */
const ownJson = (description: string) => optional(z.record(z.string(), z.unknown()), description);
const passedOn = (description: string) => field(z.unknown().optional(), description);

const functionDeclaration = field(
  z.looseObject({
    name: field(z.string(), "Letters, digits, `_`, `.`, `:` or `-`; at most 128."),
    description: optional(z.string(), "What it does and when to call it, told to the model."),
    parameters: ownJson("The schema of its arguments in the vendor’s own form, or as a JSON schema."),
    parametersJsonSchema: ownJson(
      "The JSON schema of its arguments. Wins over `parameters`. Without both, it takes none.",
    ),
    response: passedOn("Ignored."),
    responseJsonSchema: passedOn("Ignored."),
    behavior: passedOn("Ignored."),
  }),
  "A function that the model may call.",
);

const tool = field(
  z.looseObject({
    functionDeclarations: optional(z.array(functionDeclaration).max(MAX_TOOLS), "Functions of the caller."),
  }),
  "Functions of the caller, and under other keys, such as `googleSearch`, tools that the provider runs itself. Providers of other dialects do not get the latter, which is listed in `parley.omitted`.",
);

const functionCallingConfig = z.looseObject({
  mode: optional(z.string(), "`AUTO`, `ANY`, `NONE` or `VALIDATED`, which makes calls satisfy their schemas."),
  allowedFunctionNames: optional(z.array(z.string()).max(MAX_TOOLS), "The functions that may be called."),
});
const toolConfig = z.looseObject({
  functionCallingConfig: optional(functionCallingConfig, "Which functions the model should call."),
});

const thinkingConfig = z.looseObject({
  includeThoughts: optional(z.boolean(), "Whether the answer holds the thoughts, as parts with `thought`.", {
    default: false,
  }),
  thinkingLevel: optional(z.string(), "`NONE`, `MINIMAL`, `LOW`, `MEDIUM`, `HIGH`, `XHIGH` or `MAX`."),
  thinkingBudget: optional(z.int(), "Tokens for thinking; 0 for none, -1 for as many as the model likes."),
});

const imageConfig = z.looseObject({
  aspectRatio: optional(z.string(), "Such as `1:1`, `16:9` or `9:16`."),
  imageSize: optional(z.string(), "Such as `1K`, `2K` or `4K`."),
});

const generationConfig = z.looseObject({
  maxOutputTokens: optional(z.int(), "The most tokens to generate, thoughts included.", tokens),
  temperature: optional(z.number(), "Randomness.", range(RANGES.temperature)),
  topP: optional(z.number(), "Nucleus sampling.", range(RANGES.top_p)),
  topK: optional(z.int(), "Sample only from the K most likely tokens.", tokens),
  candidateCount: optional(z.int(), "How many candidates to generate.", range(RANGES.choice_count)),
  stopSequences: optional(
    z.array(z.string()).max(MAX_PARTS),
    `Texts that end the answer. The first ${MAX_STOPS} count.`,
  ),
  seed: optional(z.int(), "Asks for a repeatable answer."),
  presencePenalty: optional(z.number(), "Lowers the chance of used tokens.", range(RANGES.presence_penalty)),
  frequencyPenalty: optional(
    z.number(),
    "Lowers the chance of tokens by how often they were used.",
    range(RANGES.frequency_penalty),
  ),
  responseLogprobs: optional(z.boolean(), "Whether to return log probabilities."),
  logprobs: optional(
    z.int(),
    "How many alternatives to return at each position. Needs `responseLogprobs`.",
    range(RANGES["logprobs.top_count"]),
  ),
  responseMimeType: optional(z.string(), "`text/plain` or `application/json`."),
  responseSchema: ownJson("The schema of a JSON answer in the vendor’s own form."),
  responseJsonSchema: ownJson("The JSON schema of a JSON answer. Wins over `responseSchema`."),
  responseModalities: optional(z.array(z.string()).max(MAX_PARTS), "`TEXT`, `IMAGE`. `IMAGE` alone means both."),
  imageConfig: optional(imageConfig, "Wishes about generated pictures."),
  thinkingConfig: optional(thinkingConfig, "How much the model should think, and whether it shows it."),
});

/** The body of `generateContent` and `streamGenerateContent`. */
export const generateContentRequest = field(
  z.looseObject({
    contents: field(z.array(content), "The conversation so far, oldest first.", { minItems: 1 }),
    systemInstruction: optional(systemInstruction, "Instructions from the application, as text."),
    tools: optional(z.array(tool).max(MAX_TOOLS), "What the model may call."),
    toolConfig: optional(toolConfig, "Which tools the model should call."),
    generationConfig: optional(generationConfig, "How to answer."),
    safetySettings: optional(
      z.array(z.record(z.string(), z.unknown())).max(MAX_PARTS),
      "Passed on to providers of the Gemini dialect.",
    ),
    cachedContent: optional(z.string(), "Refused: the gateway keeps no content."),
    labels: optional(z.record(z.string(), z.string()), "Your own labels, for providers that take such."),
    serviceTier: optional(z.string(), "`flex`, `standard` or `priority`."),
    store: optional(z.boolean(), "Whether the provider may keep the completion."),
    model: passedOn("Ignored: the path names the model."),
    fallbackModels: optional(z.array(z.string()), "Models to try when the first one fails before its first content.", {
      maxItems: MAX_FALLBACKS,
    }),
    parley: optional(
      z.looseObject({
        strict: optional(z.boolean(), "Refuse what would otherwise be left out or clamped.", { default: false }),
      }),
      "What no field of the format can say.",
    ),
  }),
  "What to complete, and how. The path names the model. Every field may also be written in snake case.",
);

/** The body of `countTokens`: the fields of a request, or a whole one. */
export const countTokensRequest = field(
  z.looseObject({
    generateContentRequest: optional(generateContentRequest, "The request whose input is counted."),
    ...generateContentRequest.shape,
    contents: optional(z.array(content), "The conversation, without `generateContentRequest`."),
  }),
  "What to count.",
);

export type GeminiRequest = z.output<typeof generateContentRequest>;
export type GenerationConfig = NonNullable<GeminiRequest["generationConfig"]>;
export type GeminiTool = NonNullable<GeminiRequest["tools"]>[number];

export const KNOWN_REQUEST_KEYS: ReadonlySet<string> = new Set(Object.keys(generateContentRequest.shape));
export const KNOWN_CONFIG_KEYS: ReadonlySet<string> = new Set(Object.keys(generationConfig.shape));
export const KNOWN_THINKING_KEYS: ReadonlySet<string> = new Set(Object.keys(thinkingConfig.shape));
export const KNOWN_IMAGE_KEYS: ReadonlySet<string> = new Set(Object.keys(imageConfig.shape));
export const KNOWN_TOOL_CONFIG_KEYS: ReadonlySet<string> = new Set(Object.keys(toolConfig.shape));
