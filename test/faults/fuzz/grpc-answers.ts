import { ErrorReason } from "../../../gen/parley/v1/error_pb.js";
import { causeOf } from "../../../src/core/error-reason.ts";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.js";
import { FAILURE_TABLE, type FailureRow } from "../../../src/inbound/failure-table.ts";
import type { GrpcOutcome } from "./grpc-caller.ts";
import { PLANTED, STACK_TRACE } from "./product-under-test.ts";

/** Everything received on a stream. */
export interface GrpcAnswer {
  readonly head: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly error: unknown;
  readonly reset: number | undefined;
}

/**
 * Statuses that the gRPC library sends itself, without details, for calls that reach no handler. It reports unreadable
 * HTTP/2 headers and message prefixes as internal errors; the messages distinguish these from our failures.
 */
const LIBRARY: readonly RegExp[] = [
  /^4 Deadline exceeded$/,
  // On a reflection stream, which has many messages.
  /^8 Received message larger than max/,
  /^12 The server does not implement the method/,
  /^12 Received no request message/,
  /^12 Received message compressed with unsupported encoding/,
  /^13 Invalid grpc-timeout value/,
  // The health protocol's status for an unknown service.
  /^5 There is no such service here/,
];

/** Returns how a call ended, and the flaw if that is not permitted. */
export function flawOfCall(answer: GrpcAnswer, asked: OutgoingHttpHeaders): GrpcOutcome {
  const { head, trailers } = answer;
  const ended = (how: string, flaw?: string): GrpcOutcome => ({ ended: how, flaw });
  const said = JSON.stringify([head, trailers]);
  if (STACK_TRACE.test(said)) return ended("told too much", `a stack trace: ${said}`);
  if (PLANTED.some((secret) => said.includes(secret))) return ended("told too much", `a secret: ${said}`);
  const status = trailers["grpc-status"] ?? head["grpc-status"];
  if (status === undefined) return withoutStatus(answer, asked);
  const code = Number(status);
  if (code === 0) return ended("0 OK");
  const details = trailers["grpc-status-details-bin"] ?? head["grpc-status-details-bin"];
  const message = decodeURIComponent(String(trailers["grpc-message"] ?? head["grpc-message"] ?? ""));
  if (details === undefined) {
    const known = LIBRARY.some((words) => words.test(`${code} ${message}`));
    return ended(`${code} ${message.slice(0, 30)}`, known ? undefined : `${code} without details: ${message}`);
  }
  const { details: packed } = fromBinary(StatusSchema, Buffer.from(String(details), "base64"));
  const reason =
    packed.map((each) => anyUnpack(each, ErrorInfoSchema)).find((info) => info !== undefined)?.reason ?? "";
  const cause = causeOf(ErrorReason[reason as keyof typeof ErrorReason]);
  const row: FailureRow | undefined = cause && FAILURE_TABLE[cause.code];
  const isRow = row?.grpc === code && reason !== "INTERNAL" && reason !== "CANCELLED";
  return ended(`${code} ${reason}`, isRow ? undefined : `outside the failure table: ${code} ${reason}: ${message}`);
}

/** The HTTP/2 layer refuses invalid requests before gRPC reads them. */
function withoutStatus({ head, error, reset }: GrpcAnswer, asked: OutgoingHttpHeaders): GrpcOutcome {
  const status = Number(head[":status"]);
  if (status === 415) {
    const isGrpc = asked["content-type"]?.startsWith("application/grpc") === true;
    return { ended: "HTTP 415", flaw: isGrpc ? "415 for gRPC's own content type" : undefined };
  }
  const metadataBytes = Object.entries(asked).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length,
    0,
  );
  const isRefused =
    (reset === constants.NGHTTP2_PROTOCOL_ERROR && Number.isNaN(status)) ||
    // The limit is 8 KiB of metadata, with headers that the client adds.
    (reset === constants.NGHTTP2_ENHANCE_YOUR_CALM && metadataBytes > 8_000);
  return {
    ended: `reset ${reset}`,
    flaw: isRefused ? undefined : `no status: ${status}, reset ${reset}, ${String(error)}`,
  };
}
