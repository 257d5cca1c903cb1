/** What is asked for besides the conversation, as it was chosen and written. */
export interface Draft {
  /** What a person or a link has chosen; empty for no choice. */
  readonly chosenKeyId: string;
  readonly chosenModel: string;
  /** What the request is sent with: the choice where it works, see `resolveSetup`. Empty until it is known. */
  readonly keyId: string;
  readonly model: string;
  readonly fallbacks: readonly string[];
  readonly system: string;
  /** What was written for each parameter, by its field in the request; nothing for those that were left alone. */
  readonly parameters: Readonly<Partial<Record<ParameterField, string>>>;
  /** JSON, as OpenAI's clients write tools; empty for none. */
  readonly tools: string;
}

export const EMPTY_DRAFT: Draft = {
  chosenKeyId: "",
  chosenModel: "",
  keyId: "",
  model: "",
  fallbacks: [],
  system: "",
  parameters: {},
  tools: "",
};

/** A number with the range that the contract gives it. */
export interface NumberParameter {
  readonly field: ParameterField;
  readonly label: string;
  readonly hint: string;
  readonly whole?: true;
}

export const NUMBERS = [
  { field: "temperature", label: "Temperature", hint: "0 to 2" },
  { field: "top_p", label: "Top p", hint: "0 to 1" },
  { field: "max_tokens", label: "Max tokens", hint: "From 1", whole: true },
  { field: "seed", label: "Seed", hint: "Whole number", whole: true },
  { field: "frequency_penalty", label: "Frequency penalty", hint: "-2 to 2" },
  { field: "presence_penalty", label: "Presence penalty", hint: "-2 to 2" },
] as const satisfies readonly NumberParameter[];

/** One word of a few; the first one of each leaves it to the model. */
export const CHOICES = [
  {
    field: "reasoning_effort",
    label: "Reasoning effort",
    words: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  },
  { field: "verbosity", label: "Verbosity", words: ["low", "medium", "high"] },
  { field: "tool_choice", label: "Tool choice", words: ["auto", "none", "required"] },
  { field: "response_format", label: "Response format", words: ["text", "json_object", "json_schema"] },
] as const;

/** Every parameter by its field in the request. */
export type ParameterField =
  | "temperature"
  | "top_p"
  | "max_tokens"
  | "seed"
  | "frequency_penalty"
  | "presence_penalty"
  | "stop"
  | "response_format.json_schema.schema"
  | "image_config.aspect_ratio"
  | "image_config.image_size"
  | "modalities"
  | "strict"
  | (typeof CHOICES)[number]["field"];

/** How many parameters somebody has changed. */
export function countChanged({ parameters }: Draft): number {
  return Object.values(parameters).filter((text) => text.trim() !== "").length;
}
