import { z } from "zod";
import { MAX_PARTS } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";

/* Content blocks of messages. See `schema.ts`. */

const text = (description: string) => field(z.string(), description);
const optionalText = (description: string) => optional(z.string(), description);
const base64 = field(z.string(), "In base64.", { contentEncoding: "base64" });
const STATE = "State of the provider; send it back unchanged.";

export const cacheControl = field(
  z.looseObject({
    type: optionalText("`ephemeral`."),
    ttl: optionalText("How long to keep it, such as `5m` or `1h`; the provider’s default without it."),
  }),
  "The end of a prefix worth caching.",
);
export const cacheMark = optional(cacheControl, "Marks this as the end of a prefix worth caching.");

const base64Source = z.looseObject({
  type: z.literal("base64"),
  media_type: text("Such as `image/png` or `application/pdf`."),
  data: base64,
});
const urlSource = z.looseObject({
  type: z.literal("url"),
  url: text("An https address that the provider reads itself; the gateway fetches nothing."),
});
const fileSource = z.looseObject({
  type: z.literal("file"),
  file_id: text("The provider’s ID of an uploaded file; for providers of this dialect alone."),
});
const textSource = z.looseObject({
  type: z.literal("text"),
  media_type: optionalText("`text/plain`."),
  data: text("The text."),
});

export const textBlock = field(
  z.looseObject({ type: z.literal("text"), text: text("The text."), cache_control: cacheMark }),
  "Text.",
);

export const imageBlock = field(
  z.looseObject({
    type: z.literal("image"),
    source: field(z.discriminatedUnion("type", [base64Source, urlSource, fileSource]), "Where the picture is."),
    cache_control: cacheMark,
  }),
  "A picture.",
);

export const otherBlock = field(
  z.looseObject({ type: text("Its type."), cache_control: cacheMark }),
  "A block that other dialects have no word for, such as a search result or the call of a server tool: passed on to providers of this dialect as it is, and left out for others.",
);

const CONTENT_BLOCKS = [textBlock, imageBlock] as const;
const contentSource = z.looseObject({
  type: z.literal("content"),
  content: field(
    z.union([z.string(), z.array(z.union([z.discriminatedUnion("type", CONTENT_BLOCKS), otherBlock])).max(MAX_PARTS)]),
    "A text, or blocks.",
  ),
});
const citations = z.looseObject({ enabled: optional(z.boolean(), "Whether to cite.") });
export const documentBlock = field(
  z.looseObject({
    type: z.literal("document"),
    source: field(
      z.discriminatedUnion("type", [base64Source, textSource, urlSource, fileSource, contentSource]),
      "Where the document is.",
    ),
    title: optionalText("Its title."),
    citations: optional(citations, "Asks the model to cite the document."),
    cache_control: cacheMark,
  }),
  "A document.",
);

export const toolUseBlock = field(
  z.looseObject({
    type: z.literal("tool_use"),
    id: text("The call’s ID. Its result repeats it."),
    name: text("The tool’s name."),
    input: field(z.record(z.string(), z.unknown()), "What the tool is called with."),
    cache_control: cacheMark,
  }),
  "A call of a tool by the model.",
);

const RESULT_BLOCKS = [textBlock, imageBlock, documentBlock] as const;
const resultBlock = z.union([z.discriminatedUnion("type", RESULT_BLOCKS), otherBlock]);

export const toolResultBlock = field(
  z.looseObject({
    type: z.literal("tool_result"),
    tool_use_id: text("The ID of the call, which must be in the assistant’s message before."),
    content: optional(z.union([z.string(), z.array(resultBlock).max(MAX_PARTS)]), "The result; may be empty."),
    is_error: optional(z.boolean(), "Whether the tool failed."),
    cache_control: cacheMark,
  }),
  "The result of a call.",
);

export const thinkingBlock = field(
  z.looseObject({
    type: z.literal("thinking"),
    thinking: text("The reasoning as text; may be empty."),
    signature: optionalText(STATE),
  }),
  "How a model reasoned. Send it back unchanged, or not at all.",
);
export const redactedThinkingBlock = field(
  z.looseObject({ type: z.literal("redacted_thinking"), data: text(STATE) }),
  "Encrypted reasoning, which only the provider can read.",
);

const KNOWN_BLOCKS = [
  textBlock,
  imageBlock,
  documentBlock,
  toolUseBlock,
  toolResultBlock,
  thinkingBlock,
  redactedThinkingBlock,
] as const;
export const block = field(z.union([z.discriminatedUnion("type", KNOWN_BLOCKS), otherBlock]), "A piece of a message.");

/** A block of a type that has a counterpart in the contract. */
export type KnownBlock = z.output<(typeof KNOWN_BLOCKS)[number]>;
export type OtherBlock = z.output<typeof otherBlock>;
export type Block = KnownBlock | OtherBlock;

/** Types of blocks whose shape was checked, by the place of the blocks. Other blocks are passed on unchanged. */
export const KINDS = {
  message: kindsOf(KNOWN_BLOCKS),
  result: kindsOf(RESULT_BLOCKS),
  document: kindsOf(CONTENT_BLOCKS),
} as const;

export type Kinds = (typeof KINDS)[keyof typeof KINDS];

/** The keys of each type of known blocks. */
export const BLOCK_KEYS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  KNOWN_BLOCKS.map(({ shape }) => [shape.type.value, new Set(Object.keys(shape))]),
);

/** The keys of each type of sources. */
export const SOURCE_KEYS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [base64Source, textSource, urlSource, fileSource, contentSource].map(({ shape }) => [
    shape.type.value,
    new Set(Object.keys(shape)),
  ]),
);
export const CACHE_CONTROL_KEYS: ReadonlySet<string> = new Set(Object.keys(cacheControl.shape));
export const CITATIONS_KEYS: ReadonlySet<string> = new Set(Object.keys(citations.shape));

function kindsOf(blocks: readonly (typeof KNOWN_BLOCKS)[number][]): ReadonlySet<string> {
  return new Set(blocks.map(({ shape }) => shape.type.value));
}

export function isKnown(given: Block, kinds: Kinds): given is KnownBlock {
  return kinds.has(given.type);
}
