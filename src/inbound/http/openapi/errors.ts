import type { FailureCode, FailureDetail } from "../../../core/failure.ts";
import { FAILURE_TABLE, type FailureRow } from "../../failure-table.ts";
import { type JsonSchema, refTo } from "./components.ts";
import { ANSWER_HEADERS } from "./headers.ts";

/** More precise values of `error.code`, and the failure that has each; undefined where it is the console's alone. */
const DETAILS: Readonly<Record<FailureDetail, FailureCode | undefined>> = {
  context_length_exceeded: "upstream_rejected",
  upstream_overloaded: "upstream_unavailable",
  reauthentication_required: undefined,
};

/** The failures that a route can answer with. Who has left is answered nothing. */
export const ROUTE_FAILURES = {
  chat: (Object.keys(FAILURE_TABLE) as FailureCode[]).filter((code) => code !== "cancelled" && code !== "not_found"),
  models: ["invalid_request", "unauthenticated", "rate_limited", "overloaded", "internal"],
  model: ["invalid_request", "unauthenticated", "model_not_found", "rate_limited", "overloaded", "internal"],
} as const satisfies Record<string, readonly FailureCode[]>;

/** Values of `error.code` that a failure can have. */
export function errorCodesOf(code: FailureCode): (string | null)[] {
  const details = Object.entries(DETAILS).filter(([, owner]) => owner === code);
  return [FAILURE_TABLE[code].code, ...details.map(([detail]) => detail)];
}

/** The schema of an error body, whichever it is. */
export function errorSchema(): JsonSchema {
  const rows = Object.entries<FailureRow>(FAILURE_TABLE);
  return bodySchema({
    description: "Why a request did not work.",
    types: rows.map(([, { type }]) => type),
    codes: rows.flatMap(([code]) => errorCodesOf(code as FailureCode)),
    hasCode: "sometimes",
  });
}

/** The answers to failures, by their status. */
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

/** Headers of an answer, by their names among the document's. */
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
