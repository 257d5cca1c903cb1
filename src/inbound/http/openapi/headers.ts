/** A header of the document. */
export interface HeaderText {
  readonly description: string;
  readonly schema: object;
  /** On which answers it is. Default: all of `/v1`. */
  readonly when?: string;
}

const whole = { type: "integer", minimum: 0 } as const;
const reset = { type: "string", pattern: "^([0-9.]+(h|ms|m|s))+$", examples: ["12ms", "1.5s", "6m0s"] } as const;

/** What an answer says beside its body. On gRPC and Connect it is metadata of the same names. */
export const ANSWER_HEADERS: Readonly<Record<string, HeaderText>> = {
  "x-request-id": {
    description: "The request’s ID: the caller’s own, or one of ours. Quote it when you ask for help.",
    schema: { type: "string" },
  },
  "parley-requested-model": {
    description: "The model that was asked for.",
    schema: { type: "string" },
    when: "completions",
  },
  "parley-served-model": {
    description: "The model that answered; another one after a fallback.",
    schema: { type: "string" },
    when: "completions that were served",
  },
  "parley-attempts": {
    description: "How many calls of providers were made.",
    schema: whole,
    when: "completions",
  },
  "parley-overhead-ms": {
    description:
      "Milliseconds that Parley itself took: without the time of providers and without the backoff before a retry.",
    schema: { type: "number", minimum: 0 },
    when: "completions that were served",
  },
  "x-ratelimit-limit-requests": { description: "Requests per minute.", schema: whole, when: "limited keys" },
  "x-ratelimit-remaining-requests": { description: "What is left of them.", schema: whole, when: "limited keys" },
  "x-ratelimit-reset-requests": { description: "When all of them are back.", schema: reset, when: "limited keys" },
  "x-ratelimit-limit-tokens": { description: "Tokens per minute.", schema: whole, when: "limited keys" },
  "x-ratelimit-remaining-tokens": { description: "What is left of them.", schema: whole, when: "limited keys" },
  "x-ratelimit-reset-tokens": { description: "When all of them are back.", schema: reset, when: "limited keys" },
  "retry-after": {
    description: "Seconds to wait before trying again.",
    schema: { type: "integer", minimum: 1, maximum: 60 },
    when: "429 and 503",
  },
  "retry-after-ms": {
    description: "The same in milliseconds.",
    schema: { type: "integer", minimum: 1000, maximum: 60_000 },
    when: "429 and 503",
  },
  "x-should-retry": {
    description:
      "`false`: trying again changes nothing, or other models were tried already. Official clients then do not retry by themselves.",
    schema: { type: "string", const: "false" },
    when: "failures that are final",
  },
};

/** What a caller can say beside the body. */
export const REQUEST_HEADERS: Readonly<Record<string, HeaderText>> = {
  "x-request-id": {
    description: "Your own ID for the request. Anything else than 1 to 128 visible ASCII characters is ignored.",
    schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,128}$" },
  },
  "x-request-timeout-ms": {
    description: "How long you will wait, in milliseconds. It bounds all attempts together.",
    schema: { type: "number", exclusiveMinimum: 0 },
    when: "completions",
  },
  "x-stainless-timeout": {
    description: "The same in seconds, as official clients send it.",
    schema: { type: "number", exclusiveMinimum: 0 },
    when: "completions",
  },
};
