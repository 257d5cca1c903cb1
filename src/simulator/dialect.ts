import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Answer, Refusal } from "./answer.ts";
import type { DialectName } from "./models.ts";
import type { Prompt } from "./prompt.ts";

/** A request without its body. */
export interface Head {
  readonly method: string;
  /** As sent: still percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** One piece of a streamed answer, ready to be written. */
export interface StreamEvent {
  readonly text: string;
  /** `content` is one token (or picture, or call) and is paced; `finish` says why the answer ended. */
  readonly kind: "frame" | "content" | "finish";
}

/** A completion request that was understood, and how to answer it. */
export interface Order {
  readonly prompt: Prompt;
  /** How many alternative answers are wanted. */
  readonly choices: number;
  /** The content type of a streamed answer; undefined when the answer is wanted whole. */
  readonly streamType: string | undefined;
  /** The whole answer as the JSON value of the body. */
  encodeWhole(answers: readonly Answer[]): unknown;
  /** The events of a streamed answer. An answer without an end yields no `finish` event. */
  encodeStream(answers: readonly Answer[]): Iterable<StreamEvent>;
  /** An error in a stream that has begun. */
  encodeStreamError(refusal: Refusal): string;
}

export type Endpoint =
  | { readonly kind: "look-up"; readonly method: "GET"; /** Throws `Refusal`. */ answer(): unknown }
  | { readonly kind: "completion"; readonly method: "POST"; /** Throws `Refusal`. */ read(body: unknown): Order };

/** One provider's way of speaking HTTP. */
export interface Dialect {
  readonly name: DialectName;
  /** The endpoint at a path, whatever the method; undefined when there is none. */
  find(head: Head): Endpoint | undefined;
  /** Throws `Refusal` when the headers lack what the real service requires. Any credential is as good as another. */
  authenticate(head: Head): void;
  /** Headers of every answer. */
  identify(requestId: string): OutgoingHttpHeaders;
  /** An error answer. */
  encodeRefusal(refusal: Refusal, requestId: string): { headers: OutgoingHttpHeaders; body: unknown };
}

/** A header's value when it is there and not empty. */
export function readHeader(head: Head, name: string): string | undefined {
  const value = head.headers[name];
  const first = Array.isArray(value) ? value[0] : value;
  return first?.trim() || undefined;
}

/** The credential of an `Authorization: Bearer …` header. */
export function readBearer(head: Head): string | undefined {
  return /^Bearer\s+(\S.*)$/iu.exec(readHeader(head, "authorization") ?? "")?.[1];
}
