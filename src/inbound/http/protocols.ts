import type { IncomingMessage } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { parseContentType as parseConnectType } from "@connectrpc/connect/protocol-connect";
import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { parseContentType as parseGrpcWebType } from "@connectrpc/connect/protocol-grpc-web";
import { Failure, invalidField } from "../../core/failure.ts";

/*
 * What the protocols of the HTTP port's services differ in: Connect, also by GET (https://connectrpc.com/docs/protocol), and
 * gRPC-Web (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md).
 */

/** How a request's message is written. */
export interface MessageForm {
  /** Whether it is binary rather than JSON. */
  readonly binary: boolean;
  /** Whether it has a prefix with its length. */
  readonly enveloped: boolean;
  readonly compressed: boolean;
}

/** Whether the request is of gRPC-Web. */
export function isGrpcWeb({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.startsWith("application/grpc-web") === true;
}

/** Reads the form of the message in a request's body. Throws `invalid_request` for one that is not offered. */
export function formOfBody(request: IncomingMessage, { methodKind }: DescMethod): MessageForm {
  const contentType = request.headers["content-type"] ?? null;
  if (isGrpcWeb(request)) {
    const type = parseGrpcWebType(contentType);
    if (type === undefined || type.text)
      throw new Failure("invalid_request", "The content-type header must be application/grpc-web+proto or +json.");
    return { binary: type.binary, enveloped: true, compressed: isGzip(request, "grpc-encoding") };
  }
  const isStream = methodKind !== "unary";
  const type = parseConnectType(contentType);
  if (type?.stream !== isStream) {
    const prefix = `application/${isStream ? "connect+" : ""}`;
    throw new Failure("invalid_request", `The content-type header must be ${prefix}json or ${prefix}proto.`);
  }
  const encoding = isStream ? "connect-content-encoding" : "content-encoding";
  return { binary: type.binary, enveloped: isStream, compressed: isGzip(request, encoding) };
}

/** Whether the body is compressed. Throws `invalid_request` for an encoding other than gzip. */
function isGzip({ headers }: IncomingMessage, name: string): boolean {
  return isGzipName(String(headers[name] ?? "identity"), `The ${name} header`);
}

function isGzipName(encoding: string, what: string): boolean {
  if (encoding === "gzip") return true;
  if (encoding === "identity") return false;
  throw new Failure("invalid_request", `${what} must be gzip or identity.`);
}

/** Reads the message of a GET request from its query. Throws `invalid_request`. */
export function readQuery({ url }: IncomingMessage): MessageForm & { readonly content: Buffer } {
  const query = new URL(url!, "http://connect.invalid").searchParams;
  const encoding = query.get("encoding");
  if (encoding !== "json" && encoding !== "proto")
    throw new Failure("invalid_request", "The query must have encoding=json or encoding=proto.");
  const message = query.get("message");
  if (message === null) throw new Failure("invalid_request", "The query must have the message.");
  return {
    binary: encoding === "proto",
    enveloped: false,
    compressed: isGzipName(query.get("compression") ?? "identity", "The compression of the query"),
    content: Buffer.from(message, query.get("base64") === "1" ? "base64url" : "utf8"),
  };
}

const CONNECT_TIMEOUT = "connect-timeout-ms";
const GRPC_TIMEOUT = "grpc-timeout";

/** Headers with the deadline of a request. */
export const TIMEOUTS: ReadonlySet<string> = new Set([CONNECT_TIMEOUT, GRPC_TIMEOUT]);

/** Time to the deadline of a request; undefined without a valid one. */
export function timeoutMsOf(request: IncomingMessage): number | undefined {
  if (isGrpcWeb(request)) return parseTimeout(single(request, GRPC_TIMEOUT), Infinity).timeoutMs;
  const text = single(request, CONNECT_TIMEOUT);
  return text !== null && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

/** Throws `invalid_request` for a deadline that cannot be read. */
export function requireReadableTimeout(request: IncomingMessage): void {
  const name = isGrpcWeb(request) ? GRPC_TIMEOUT : CONNECT_TIMEOUT;
  if (single(request, name) === null || timeoutMsOf(request) !== undefined) return;
  const what =
    name === GRPC_TIMEOUT
      ? "at most eight digits and a unit (H, M, S, m, u or n)"
      : "a number of milliseconds of at most ten digits";
  throw invalidField(name, `must be ${what}`);
}

function single({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? value : null;
}
