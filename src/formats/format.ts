import type { Completion, CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest, Embeddings } from "../../gen/parley/v1/embedding_pb.js";
import type { Model } from "../../gen/parley/v1/model_pb.js";
import type { Failure } from "../core/failure.ts";
import type { KeptResponse, KeptResponses } from "../core/kept-responses.ts";
import type { LimitFacts } from "../core/limiter.ts";
import type { CallersBody } from "../core/provider.ts";
import type { JsonText } from "./held-strings.ts";

/** Headers of a request, names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * A wire format that HTTP callers speak. Each has a folder with the same file names, which exports one value of this type from
 * its `format.ts`; `formats.ts` lists them. Formats do not import each other, and the HTTP server knows only this interface.
 */
export interface Format {
  /** Name in logs, such as `openai-chat`. */
  readonly name: string;
  readonly routes: readonly FormatRoute[];
  /** Whether an error at a path without a route is written in this format. The first format that returns true writes it. */
  readonly owns: (path: string, headers: RequestHeaders) => boolean;
  /** Writes a failure before anything else was sent. The HTTP server adds `retry-after` and the headers of the caller's limits. */
  readonly writeError: (failure: Failure, requestId: string) => ErrorResponse;
  /** Headers of every response of this format, beside Parley's own. Default: none. */
  readonly responseHeaders?: (requestId: string) => HeaderList;
  /** Whether readers of requests read the header of this name; a front sends it to its core. Default: none. */
  readonly readsHeader?: (name: string) => boolean;
  /** Names of the headers that only answers of this format have. Default: none. */
  readonly headerNames?: readonly string[];
  /** Headers with the caller's limits beside those of OpenAI's format; `now`: milliseconds since 1970. Default: none. */
  readonly limitHeaders?: (limits: LimitFacts, now: number) => HeaderList;
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** An error response. */
export interface ErrorResponse {
  readonly status: number;
  readonly body: object;
  readonly headers?: HeaderList;
}

/** A route of a format. */
export interface FormatRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** An exact path, or a path with one placeholder for any text, such as `/v1beta/models/{model}:countTokens`. */
  readonly path: string;
  /** Whether a request is of this format, if several formats have the path. Default: always. */
  readonly accepts?: (headers: RequestHeaders) => boolean;
  /** Whether a text may replace the placeholder. Default: any text. */
  readonly isName?: (name: string) => boolean;
  /** Returns the operation. `name`: the decoded text in place of the placeholder, empty for an exact path. */
  readonly operation: (name: string) => Operation;
}

/** The operation of a route. */
export type Operation =
  | {
      readonly name: "completion";
      readonly read: (input: FormatInput) => ReadCompletion;
      /** Whether a body may also be multipart/form-data: `read` gets `form` then. Default: JSON only. */
      readonly takesForms?: boolean;
    }
  | { readonly name: "count"; readonly read: (input: FormatInput) => ReadCount }
  | { readonly name: "explain"; readonly read: (input: FormatInput) => ReadExplanation }
  | { readonly name: "embedding"; readonly read: (input: FormatInput) => ReadEmbedding }
  | { readonly name: "models"; readonly write: (models: readonly Model[], query: URLSearchParams) => object }
  | { readonly name: "model"; readonly id: string; readonly write: (model: Model) => object }
  /** Works on stored answers; not found on a gateway that stores none. The returned function is synchronous work, charged to the key. */
  | { readonly name: "kept"; readonly find: (input: KeptInput) => Promise<() => object> }
  /** An answer that needs no key and no body, such as the refusal of a WebSocket. */
  | { readonly name: "fixed"; readonly status: number; readonly headers: HeaderList };

/** A request about kept answers. */
export interface KeptInput {
  readonly responses: KeptResponses;
  readonly accountId: string;
  readonly query: URLSearchParams;
}

/** A request to a route that has a body. */
export interface FormatInput {
  /** The body: a JSON object; undefined for a form. */
  readonly json: unknown;
  /** The fields of a body that is a form, in their order; undefined for JSON. */
  readonly form?: readonly FormField[] | undefined;
  readonly headers: RequestHeaders;
  readonly query: URLSearchParams;
  readonly requestId: string;
  /** Whether answers may be kept (`ReadCompletion.keeping`). Default: no. */
  readonly keeps?: boolean;
}

/** A field of a multipart/form-data body: text, or a file. */
export interface FormField {
  /** Not empty; a form may have several fields of one name. */
  readonly name: string;
  readonly data: Buffer;
  /** The declared media type; empty without one. */
  readonly mediaType: string;
}

/** Content type of server-sent events. */
export const EVENT_STREAM = "text/event-stream; charset=utf-8";

/** Converts the path of a request field from the contract's names to those of the format. */
export type NameOf = (path: string) => string;

/** A read request. */
interface Read<R> {
  readonly request: R;
  /** Names of fields that the contract does not have, for `Call.unrecognized`. */
  readonly unrecognized: readonly string[];
  /** The caller's names of the request's fields. */
  readonly nameOf: NameOf;
  /** The body, for a format that is a provider's dialect. Default: it is not sent. */
  readonly body?: CallersBody;
}

/** A read request for a completion, and the writers of its answer. */
export interface ReadCompletion extends Read<CompletionRequest> {
  readonly stream: boolean;
  readonly writeWhole: (completion: Completion) => JsonText;
  /** Called once, when `stream` is true. */
  readonly writeStream: () => AnswerStream;
  /** Present for a request that continues a kept answer; the request is incomplete without that answer. */
  readonly previous?: PreviousAnswer<ReadCompletion> | undefined;
  /** Present when the answer is to be kept. */
  readonly keeping?: Keeping | undefined;
}

/** The kept answer that a request continues. */
export interface PreviousAnswer<R> {
  readonly id: string;
  /** Returns the complete request. `content`: undefined if the answer is not found. Throws `invalid_request`, `request_too_large`. */
  readonly join: (content: Buffer | undefined) => R;
}

/** How an answer is kept. The end of the answer's text states that it was kept. */
export interface Keeping {
  /** Returns the content to keep of a whole answer and its text. The result must not reference them. */
  readonly whole: (completion: Completion, text: JsonText) => KeptResponse;
  /** Length of the end of a whole answer with that statement. */
  readonly endBytes: number;
  /** Returns the end, of the same length, for an answer that could not be kept. */
  readonly withdraw: (end: string) => string;
}

/** Writes the chunks of one answer. */
export interface AnswerStream {
  readonly contentType: string;
  /** Text that keeps proxies from closing a silent stream, sent between events and before the first one. Read each time. Empty: none. */
  readonly keepAlive: string;
  /** Whether the last text was the end of the stream. */
  readonly ended: boolean;
  /** Whether its last text repeats the pictures of the whole answer. Default: no. */
  readonly repeatsPictures?: boolean;
  /** The content to keep of an answer, once it has ended. Default: none. */
  readonly kept?: KeptResponse | undefined;
  /** Converts chunks into text; empty when nothing can be sent yet. The first chunk is `start`, the last `report`. */
  write(chunks: readonly CompletionChunk[]): string;
  /** The last text of a stream that broke off; the connection is closed after it. */
  fail(failure: Failure): string;
}

/** A read request to count tokens. */
export interface ReadCount extends Read<CompletionRequest> {
  readonly write: (inputTokens: number) => object;
  /** Present for a request that continues a kept answer; the request is incomplete without that answer. */
  readonly previous?: PreviousAnswer<ReadCount> | undefined;
}

/** A read request for a completion that is only explained. */
export interface ReadExplanation extends Read<CompletionRequest> {
  readonly stream: boolean;
}

/** A read request for embeddings. */
export interface ReadEmbedding extends Read<EmbeddingRequest> {
  /** The pieces of the answer's JSON. Each piece is created when the earlier ones have been sent. */
  readonly write: (embeddings: Embeddings) => Iterable<Buffer>;
}
