import type { FormatName } from "./callers/caller.ts";
import type { Scenario } from "./scenario.ts";

/** Scenarios that are not played in a format, and why. */
interface Skip {
  /** What the format has no word for, as its writer says (`Unsayable.need`); undefined for another reason. */
  readonly need?: string;
  readonly reason: string;
  readonly scenarios: readonly string[];
}

/** Skipped in the other formats, and through a front. */
export const SLOW: Skip = {
  reason:
    "They wait for a breaker to become half-open, which is the same for all: chat completions and gRPC are enough.",
  scenarios: [
    "probes a model with a half-open breaker, and closes it when the model serves",
    "opens the breaker again when its probe fails, without a second attempt",
  ],
};

const NO_MODEL: Skip = {
  need: "no model",
  reason: "The path names the model.",
  scenarios: ["names the field when a request has no model"],
};

const NO_END_USER: Skip = {
  need: "endUserId",
  reason: "The API has no ID of an end user.",
  scenarios: ["lists the end user for a provider that has none"],
};

/** All scenarios of the common table that are skipped, by format. A test compares this with what the writers refuse to write. */
export const SKIPPED: Readonly<Record<FormatName, readonly Skip[]>> = {
  chat: [],
  // Its callers play rows about pictures only.
  images: [],
  embeddings: [
    {
      need: "task",
      reason: "The API has no tasks.",
      scenarios: ["lists the task for a provider that has none"],
    },
    SLOW,
  ],
  embedContent: [
    NO_MODEL,
    NO_END_USER,
    {
      need: "another number of texts than one",
      reason: "The method makes one vector.",
      scenarios: [
        "returns a vector of alpha for each input, in order",
        "returns a vector of beta for each input, in order",
        "names the field when a request for embeddings has no inputs",
        "names the field when a request for embeddings has an empty input after another one",
        "names the field when a request for embeddings has 2,049 inputs",
        "names the field when a request for embeddings has 101 inputs for a provider that takes 100",
        "returns a failure when a provider returns fewer vectors than there are inputs",
      ],
    },
    SLOW,
  ],
  batchEmbedContents: [
    NO_MODEL,
    NO_END_USER,
    {
      reason: "The format itself refuses it, before it is a call of a model.",
      scenarios: ["names the field when a request for embeddings has 2,049 inputs"],
    },
    SLOW,
  ],
  responses: [
    {
      need: "choiceCount",
      reason: "A response has one choice.",
      scenarios: [
        "returns the requested number of choices if the provider supports it",
        "names the field when a request has no choices",
        "names the field when a request has 129 choices",
        "names the field when a request has two choices of a model that gives one",
        "names the field when a request has two choices of another model that gives one",
        "skips a fallback model that does not support the number of choices",
      ],
    },
    {
      need: "stopSequences",
      reason: "The API has no stop sequences.",
      scenarios: [
        "accepts the upper bound of every other range",
        "names the field when a request has five stop sequences",
        "names the field when a request has an empty stop sequence",
      ],
    },
    {
      need: "frequencyPenalty",
      reason: "The API has no penalties.",
      scenarios: [
        "accepts the lower bound of every other range",
        "lists a field that the provider does not support",
        "names the field when a request has a frequency_penalty above 2",
      ],
    },
    {
      need: "presencePenalty",
      reason: "The API has no penalties.",
      scenarios: ["names the field when a request has a presence_penalty below -2"],
    },
    {
      need: "logitBias",
      reason: "The API has no biases of tokens.",
      scenarios: ["names the field when a request has a logit_bias above 100"],
    },
    {
      need: "modalities",
      reason: "A tool asks for pictures, always beside text; there is no speech.",
      scenarios: [
        "names the field when a request has pictures without text",
        "names the field when a request has speech of a model that does not speak",
      ],
    },
    {
      need: "seed",
      reason: "The API has no seed.",
      scenarios: ["refuses a strict request that would lose a field"],
    },
    SLOW,
  ],
  messages: [
    {
      need: "modalities",
      reason: "The API makes text only.",
      scenarios: [
        "returns the text and the image of an image model",
        "returns the image after a retry",
        "says that the provider of images refuses us",
        "says that the model of images does not exist",
        "names the field when a request has pictures without text",
        "names the field when a request has speech of a model that does not speak",
        "names the image models when images are requested from another model",
        "names the capability that the key lacks",
        "skips a fallback model without image output when images are requested",
      ],
    },
    {
      need: "choiceCount",
      reason: "A message is one choice.",
      scenarios: [
        "returns the requested number of choices if the provider supports it",
        "names the field when a request has no choices",
        "names the field when a request has 129 choices",
        "names the field when a request has two choices of a model that gives one",
        "names the field when a request has two choices of another model that gives one",
        "skips a fallback model that does not support the number of choices",
      ],
    },
    {
      need: "frequencyPenalty",
      reason: "The API has no penalties.",
      scenarios: [
        "accepts the upper bound of every other range",
        "accepts the lower bound of every other range",
        "lists a field that the provider does not support",
        "names the field when a request has a frequency_penalty above 2",
      ],
    },
    {
      need: "presencePenalty",
      reason: "The API has no penalties.",
      scenarios: ["names the field when a request has a presence_penalty below -2"],
    },
    {
      need: "logprobs",
      reason: "The API has no probabilities of tokens.",
      scenarios: ["names the field when a request has 21 alternatives of each token"],
    },
    {
      need: "logitBias",
      reason: "The API has no biases of tokens.",
      scenarios: ["names the field when a request has a logit_bias above 100"],
    },
    {
      need: "a fifth stop sequence",
      reason: "More than four are not refused: the first four count, and the others are listed as left out.",
      scenarios: ["names the field when a request has five stop sequences"],
    },
    {
      need: "metadata",
      reason: "The API has no labels, only the ID of a user.",
      scenarios: [
        "names the field when a request has 17 labels",
        "names the field when a request has a label longer than 512 characters",
      ],
    },
    {
      need: "seed",
      reason: "The API has no seed.",
      scenarios: ["refuses a strict request that would lose a field"],
    },
    {
      reason: "The format itself refuses it, before it is a completion: the format's own scenarios have it.",
      scenarios: ["names the field when a request has no messages"],
    },
    SLOW,
  ],
  gemini: [
    {
      need: "logitBias",
      reason: "The API has no biases of tokens.",
      scenarios: [
        "accepts the upper bound of every other range",
        "accepts the lower bound of every other range",
        "names the field when a request has a logit_bias above 100",
      ],
    },
    NO_MODEL,
    {
      need: "a message without parts",
      reason: "A content without parts is left out.",
      scenarios: ["names the field when a request has a user who says nothing"],
    },
    {
      need: "a fifth stop sequence",
      reason: "More than four are not refused: the first four count, and the others are listed as left out.",
      scenarios: ["names the field when a request has five stop sequences"],
    },
    {
      need: "modalities",
      reason: "Pictures alone mean pictures beside text; there is no speech.",
      scenarios: [
        "names the field when a request has pictures without text",
        "names the field when a request has speech of a model that does not speak",
      ],
    },
    SLOW,
  ],
};

/**
 * Whether a scenario is not played by callers of a format. Beside the table: which dialect a provider has is nothing that a format
 * knows, so only those of one format of each service play the same scenario with each.
 */
export function isSkipped({ name, isRepeat = false }: Scenario, format: FormatName): boolean {
  return (isRepeat && !WITH_REPEATS.has(format)) || SKIPPED[format].some(({ scenarios }) => scenarios.includes(name));
}

const WITH_REPEATS: ReadonlySet<FormatName> = new Set(["chat", "embeddings"]);
