/** Settings of the request besides the conversation, as entered. */
export interface Draft {
  /** Selected by the user or a link; empty without a selection. */
  readonly chosenKeyId: string;
  readonly chosenModel: string;
  /** Sent with the request: the selection if it is usable, see `resolveSetup`. Empty until resolved. */
  readonly keyId: string;
  readonly model: string;
  readonly fallbacks: readonly string[];
  readonly system: string;
  /** Entered text by field name in the request; missing for unchanged parameters. */
  readonly parameters: Readonly<Partial<Record<ParameterField, string>>>;
  /** JSON in the OpenAI tools format; empty for none. */
  readonly tools: string;
  /** JSON object of simulated results by function name; empty for none. */
  readonly results: string;
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
  results: "",
};

/** A numeric parameter. The hint is the range of the contract. */
export interface NumberParameter {
  readonly field: ParameterField;
  readonly label: string;
  readonly hint: string;
  readonly whole?: true;
}

export const NUMBERS = [
  { field: "temperature", label: "Temperature", hint: "0 to 2" },
  { field: "top_p", label: "Top p", hint: "0 to 1" },
  { field: "max_output_tokens", label: "Max tokens", hint: "From 1", whole: true },
  { field: "seed", label: "Seed", hint: "Whole number", whole: true },
  { field: "frequency_penalty", label: "Frequency penalty", hint: "-2 to 2" },
  { field: "presence_penalty", label: "Presence penalty", hint: "-2 to 2" },
] as const satisfies readonly NumberParameter[];

/** Enumerated parameters. No selection leaves the value to the model. */
export const CHOICES = [
  {
    field: "reasoning.effort",
    label: "Reasoning effort",
    words: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  },
  { field: "verbosity", label: "Verbosity", words: ["low", "medium", "high"] },
  { field: "tool_choice", label: "Tool choice", words: ["auto", "none", "required"] },
  { field: "response_format", label: "Response format", words: ["text", "json_object", "json_schema"] },
] as const;

/** Field names of all parameters. */
export type ParameterField =
  | "temperature"
  | "top_p"
  | "max_output_tokens"
  | "seed"
  | "frequency_penalty"
  | "presence_penalty"
  | "stop_sequences"
  | "response_format.json_schema.schema_json"
  | "image_options.aspect_ratio"
  | "image_options.size"
  | "modalities"
  | "strict"
  | (typeof CHOICES)[number]["field"];

/** Returns the number of changed parameters. */
export function countChanged({ parameters }: Draft): number {
  return Object.values(parameters).filter((text) => text.trim() !== "").length;
}
