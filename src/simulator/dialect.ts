import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Answer, Refusal } from "./answer.ts";
import type { DialectName } from "./models.ts";
import type { Prompt } from "./prompt.ts";

/** Request line and headers. */
export interface Head {
  readonly method: string;
  /** Path as sent: percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** One encoded event of a stream. */
export interface StreamEvent {
  readonly text: string;
  /** `content` is one token, image or call, sent at the configured pace; `finish` carries the finish reason. */
  readonly kind: "frame" | "content" | "finish";
}

/** A parsed completion request with the encoders for its answer. */
export interface Order {
  readonly prompt: Prompt;
  /** Number of alternative answers. */
  readonly choices: number;
  /** Content type of the stream; undefined for a whole answer. */
  readonly streamType: string | undefined;
  /** Encodes the whole answer as the JSON body. */
  encodeWhole(answers: readonly Answer[]): string | Promise<string>;
  /** Encodes the answer as stream events. An answer without an end yields no `finish` event. */
  encodeStream(answers: readonly Answer[]): Iterable<StreamEvent>;
  /** Encodes an error in a stream that has started. */
  encodeStreamError(refusal: Refusal): string;
}

type Endpoint =
  | { readonly kind: "look-up"; readonly method: "GET"; /** Throws `Refusal`. */ answer(): unknown }
  | { readonly kind: "completion"; readonly method: "POST"; /** Throws `Refusal`. */ read(body: unknown): Order };

/** HTTP API of one provider. */
export interface Dialect {
  readonly name: DialectName;
  /** Returns the endpoint at a path, for any method; undefined for an unknown path. */
  find(head: Head): Endpoint | undefined;
  /** Throws `Refusal` if the headers lack what the real API requires. Accepts any credential. */
  authenticate(head: Head): void;
  /** Returns headers of every response. */
  identify(requestId: string): OutgoingHttpHeaders;
  /** Encodes an error response. */
  encodeRefusal(refusal: Refusal, requestId: string): { headers: OutgoingHttpHeaders; body: unknown };
}

/** Returns a header's value; undefined if missing or empty. */
export function readHeader(head: Head, name: string): string | undefined {
  const value = head.headers[name];
  const first = Array.isArray(value) ? value[0] : value;
  return first?.trim() || undefined;
}

/** Returns the credential of an `Authorization: Bearer …` header. */
export function readBearer(head: Head): string | undefined {
  return /^Bearer\s+(\S.*)$/iu.exec(readHeader(head, "authorization") ?? "")?.[1];
}
