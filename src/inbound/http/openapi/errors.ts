import type { FailureCode, FailureDetail } from "../../../core/failure.ts";
import { FAILURE_TABLE, type FailureRow } from "../../failure-table.ts";
import { type JsonSchema, refTo } from "./components.ts";
import { LABEL_HEADERS } from "../../required-labels.ts";

/** A header of the document. */
interface HeaderText {
  readonly description: string;
  readonly schema: object;
  /** Responses with this header. Default: all of `/v1`. */
  readonly when?: string;
}

const whole = { type: "integer", minimum: 0 } as const;
const reset = { type: "string", pattern: "^([0-9.]+(h|ms|m|s))+$", examples: ["12ms", "1.5s", "6m0s"] } as const;

/** Response headers; over gRPC and Connect metadata of the same names. */
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

/** Headers of all responses, and those of completions. */
export const EVERYWHERE = Object.keys(ANSWER_HEADERS).filter(
  (name) => name.startsWith("x-ratelimit-") || name === "x-request-id",
);
export const ROUTING = Object.keys(ANSWER_HEADERS).filter((name) => name.startsWith("parley-"));

const labelValues = { type: "string", pattern: "^[a-z0-9._-]{1,64}( *, *[a-z0-9._-]{1,64}){0,15}$" };

/** Request headers. */
const REQUEST_HEADERS: Readonly<Record<string, HeaderText>> = {
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
  "x-server-timeout": {
    description: "The same in seconds, as Google’s clients send it.",
    schema: { type: "number", exclusiveMinimum: 0 },
    when: "completions",
  },
  [LABEL_HEADERS.region]: {
    description: "Regions, separated by commas: only models with the label `region` of one of them are used.",
    schema: labelValues,
    when: "completions and embeddings",
  },
  [LABEL_HEADERS.retention]: {
    description: "The same for the label `retention`.",
    schema: labelValues,
    when: "completions and embeddings",
  },
};

/** Request headers of completions and embeddings: labels that a model must have. */
export const LABEL_PARAMETERS = Object.values(LABEL_HEADERS);

/** Request headers as parameters. */
export function headerParameters(names: readonly string[]): object[] {
  return names.map((name) => {
    const { description, schema } = REQUEST_HEADERS[name]!;
    return { name, in: "header", description, schema };
  });
}

/** More precise values of `error.code` with their failures; undefined for those of the dashboard only. */
const DETAILS: Readonly<Record<FailureDetail, FailureCode | undefined>> = {
  context_length_exceeded: "upstream_rejected",
  upstream_overloaded: "upstream_unavailable",
  reauthentication_required: undefined,
  second_factor_required: undefined,
  previous_response_not_found: "invalid_request",
  unsupported_value: "invalid_request",
};

/** Failures that completions in the OpenAI format do not have. Disconnected callers get no answer. */
const NOT_OF_CHAT: ReadonlySet<FailureCode> = new Set(["cancelled", "conflict", "not_found", "response_too_large"]);

/** Failures of a route. */
export const ROUTE_FAILURES = {
  chat: (Object.keys(FAILURE_TABLE) as FailureCode[]).filter((code) => !NOT_OF_CHAT.has(code)),
  embeddings: (Object.keys(FAILURE_TABLE) as FailureCode[]).filter((code) => !NOT_OF_CHAT.has(code)),
  stored: ["invalid_request", "unauthenticated", "not_found", "rate_limited", "overloaded", "internal"],
  models: ["invalid_request", "unauthenticated", "rate_limited", "overloaded", "internal"],
  model: ["invalid_request", "unauthenticated", "model_not_found", "rate_limited", "overloaded", "internal"],
} as const satisfies Record<string, readonly FailureCode[]>;

/** Values of `error.code` of a failure. */
export function errorCodesOf(code: FailureCode): (string | null)[] {
  const details = Object.entries(DETAILS).filter(([, owner]) => owner === code);
  return [FAILURE_TABLE[code].code, ...details.map(([detail]) => detail)];
}

/** Schema of all error bodies. */
export function errorSchema(): JsonSchema {
  const rows = Object.entries<FailureRow>(FAILURE_TABLE);
  return bodySchema({
    description: "Why a request did not work.",
    types: rows.map(([, { type }]) => type),
    codes: rows.flatMap(([code]) => errorCodesOf(code as FailureCode)),
    hasCode: "sometimes",
  });
}

/** Responses of failures by status. */
export function errorResponses(codes: readonly FailureCode[]): Record<string, object> {
  const byStatus = Map.groupBy(codes, (code) => FAILURE_TABLE[code].http);
  return Object.fromEntries(
    [...byStatus].toSorted(([a], [b]) => a - b).map(([status, of]) => [String(status), toResponse(status, of)]),
  );
}

function toResponse(status: number, codes: readonly FailureCode[]): object {
  const waits = status === 429 || status === 503 ? ["retry-after", "retry-after-ms"] : [];
  const names = ["x-request-id", ...waits, ...(status >= 429 ? ["x-should-retry"] : [])];
  const schema = bodySchema({
    types: codes.map((code) => FAILURE_TABLE[code].type),
    codes: codes.flatMap(errorCodesOf),
    hasCode: status === FAILURE_TABLE.unauthenticated.http ? "never" : "always",
  });
  return {
    description: codes.map((code) => `\`${code}\``).join(", "),
    headers: {
      ...headerRefs(names),
      ...(status === FAILURE_TABLE.unauthenticated.http && {
        "www-authenticate": { schema: { type: "string", const: "Bearer" } },
      }),
    },
    content: { "application/json": { schema } },
  };
}

/** Headers of a response, as references into the document. */
export function headerRefs(names: readonly string[]): Record<string, object> {
  return Object.fromEntries(
    names.filter((name) => name in ANSWER_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
  );
}

interface BodyFacts {
  readonly description?: string;
  readonly types: readonly string[];
  readonly codes: readonly (string | null)[];
  readonly hasCode: "always" | "sometimes" | "never";
}

function bodySchema({ description, types, codes, hasCode }: BodyFacts): JsonSchema {
  return {
    ...(description !== undefined && { description }),
    type: "object",
    properties: {
      error: {
        type: "object",
        properties: {
          message: { type: "string", description: "What is wrong, for people." },
          type: { enum: unique(types), description: "The kind of failure." },
          param: { type: ["string", "null"], description: "The field of the request that is wrong." },
          ...(hasCode !== "never" && {
            code: { enum: unique(codes), description: "The failure more precisely, where clients act on it." },
          }),
          attempts: { type: "array", items: refTo("Attempt"), description: "The upstream models that were tried." },
        },
        required: ["message", "type", "param", ...(hasCode === "always" ? ["code"] : [])],
      },
    },
    required: ["error"],
  };
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
