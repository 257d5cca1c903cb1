import type { IncomingHttpHeaders } from "node:http";
import type { CompletionRequest } from "../../../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest } from "../../../../gen/parley/v1/embedding_pb.js";
import type { Mode } from "../../../../src/core/router.ts";
import { inShort, type Reply, type SeenReport } from "../reply.ts";
import type { ExpectedFailure, Scenario } from "../scenario.ts";

/** Names of the HTTP formats. */
export type FormatName =
  | "chat"
  | "responses"
  | "messages"
  | "gemini"
  | "images"
  | "embeddings"
  | "embedContent"
  | "batchEmbedContents";

/** Callers of one HTTP format: how they write a request and read a response. Everything that differs by format in a scenario. */
export type Caller = CompletionCaller | EmbeddingCaller;

/** Callers of a format of completions. */
export interface CompletionCaller extends FormatCaller {
  readonly service: "completions";
  /** The JSON of a request. Throws `Unsayable` for what the format has no word for. */
  write(request: CompletionRequest, mode: Mode): Record<string, unknown>;
}

/** Callers of a format of embeddings, which are never streamed. */
export interface EmbeddingCaller extends FormatCaller {
  readonly service: "embeddings";
  /** The JSON of a request. Throws `Unsayable` for what the format has no word for. */
  write(request: EmbeddingRequest): Record<string, unknown>;
}

interface FormatCaller {
  readonly format: FormatName;
  /** Path of a request; it may depend on the model. */
  path(model: string, mode: Mode): string;
  /** A path like the format's own that is not served. */
  readonly unknownPath: string;
  /** The format's name of a field of the contract, such as `messages[0].parts`. */
  nameOf(field: string): string;
  /** Reads a response, whole or streamed, and checks its form. */
  read(response: SeenResponse): Said;
  /** The documented form of a failure. */
  look(failure: ExpectedFailure): FailureLook;
  /** Whether an error has a field for the name of the invalid field. Without it, the name begins the message. */
  readonly hasParam: boolean;
  /** Scenarios in words that only this format has. */
  readonly own: readonly Scenario[];
  /** Whether it plays a scenario of the common table. Default: all but the skipped ones. */
  readonly plays?: (scenario: Scenario) => boolean;
  /** Whether answers have a place for text. Default: yes. */
  readonly hasText?: false;
}

/** A received response. */
export interface SeenResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly mode: Mode;
}

/** What a response says; its headers are read elsewhere. */
export type Said = Omit<Reply, "facts">;

/** The form of a failure, written independently of the product's tables. */
export interface FailureLook {
  /** As `SeenFailure.status`. */
  readonly status: string;
  /** As `SeenFailure.code`. */
  readonly code: string | null;
}

/** A request, or a part of it, that a format has no word for. */
export class Unsayable extends Error {
  readonly need: string;

  constructor(need: string) {
    super(`the format has no word for: ${need}`);
    this.need = need;
  }
}

/** Throws for each field of the list that the request has. */
export function refuseUnsayable<T extends object>(request: T, fields: readonly (keyof T & string)[]): void {
  for (const field of fields) if (isPresent(request[field])) throw new Unsayable(field);
}

function isPresent(value: unknown): boolean {
  if (value === undefined) return false;
  if (Array.isArray(value)) return value.length > 0;
  const isMap = typeof value === "object" && value !== null && !("$typeName" in value);
  return !isMap || Object.keys(value).length > 0;
}

/** Whether a response is a stream: an error before the first content is whole. */
export function isStreamed({ status, mode }: SeenResponse): boolean {
  return mode === "stream" && status === 200;
}

/** The texts of inputs of embeddings. */
export function textsOf(inputs: EmbeddingRequest["inputs"]): string[] {
  return inputs.map(({ kind }) => kind.value ?? "");
}

/** A list under its name; nothing for an empty one. */
export function given(name: string, list: readonly unknown[]): Record<string, unknown> {
  return list.length > 0 ? { [name]: list } : {};
}

/** Advice about a retry, the same in the headers of all formats. A stream that had begun has none. */
export function readAdvice(response: SeenResponse): {
  readonly retryAfterS: number | undefined;
  readonly final: boolean | undefined;
} {
  const { headers } = response;
  const retryAfter = headers["retry-after"];
  return {
    retryAfterS: retryAfter === undefined ? undefined : Number(retryAfter),
    final: isStreamed(response) ? undefined : headers["x-should-retry"] === "false",
  };
}

/** One attempt in the JSON of a report or an error. */
export interface AttemptJson {
  readonly model: string;
  readonly outcome: string;
  readonly upstream_status: number | null;
}

/** The `parley` object of an answer, the same in all formats. */
export interface ReportJson {
  readonly attempts: readonly AttemptJson[];
  readonly omitted: readonly string[];
  readonly clamped: readonly {
    readonly field: string;
    readonly requested: number | string;
    readonly sent: number | string;
  }[];
}

export function readReport({ attempts, omitted, clamped }: ReportJson): SeenReport {
  return {
    attempts: attempts.map(readAttempt),
    omitted,
    clamped: clamped.map(({ field, requested, sent }) => `${field} ${requested}>${sent}`),
  };
}

export function readAttempt({ model, outcome, upstream_status: status }: AttemptJson): string {
  return inShort({ model, outcome, status });
}

/** Names of the contract's fields in a format: each pattern with its replacement, of which the first that matches counts. */
export function renamer(names: readonly (readonly [contract: RegExp, own: string])[]): (field: string) => string {
  return (field) => {
    const found = names.find(([contract]) => contract.test(field));
    return found === undefined ? field : field.replace(...found);
  };
}

/** Fields of a wrong type, with the name that the error has to have. */
export type WrongType = readonly [param: string, fields: Readonly<Record<string, unknown>>];

/** Scenarios about the JSON of a format: wrong types, and null for fields that may be left out. */
export function jsonScenarios(
  wrong: readonly [WrongType, ...WrongType[]],
  nulls: Readonly<Record<string, null>>,
  hello: NonNullable<Scenario["upstream"]>,
): readonly Scenario[] {
  const [[firstParam, firstFields]] = wrong;
  return [
    ...wrong.map(([param, fields]): Scenario => ({
      name: `names a field with a wrong type: ${JSON.stringify(fields)}`,
      at: "http",
      fields,
      expected: { failure: "invalid_request", refused: true, ownParam: param },
    })),
    {
      name: "reports a wrong type before an unknown model",
      at: "http",
      ask: { model: "nobody" },
      fields: firstFields,
      expected: { failure: "invalid_request", refused: true, ownParam: firstParam },
    },
    {
      name: "treats null as an omitted field",
      at: "http",
      fields: nulls,
      upstream: hello,
      expected: { answer: {} },
    },
  ];
}
