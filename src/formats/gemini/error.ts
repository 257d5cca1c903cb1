import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { Failure } from "../../core/failure.ts";
import { errorDetails } from "../../inbound/error-details.ts";
import { FAILURE_TABLE } from "../../inbound/failure-table.ts";

/** Names of `google.rpc.Code` by the HTTP status. */
const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** The HTTP status of a failure: that of the failure table, except for deadlines, which have their own status in this format. */
export function statusOf({ code }: Failure): number {
  return code === "deadline_exceeded" ? 504 : FAILURE_TABLE[code].http;
}

/** Converts a failure to the error body of the format: a `google.rpc.Status` with the details of gRPC as JSON. */
export function toErrorBody(failure: Failure, requestId: string): object {
  const code = statusOf(failure);
  const details = errorDetails(failure, requestId).map(({ desc, value }) => toDetail(desc, value));
  return { error: { code, message: failure.message, status: STATUS_WORDS[code], details } };
}

function toDetail<D extends DescMessage>(desc: D, value: MessageInitShape<D>): object {
  return { "@type": `type.googleapis.com/${desc.typeName}`, ...(toJson(desc, create(desc, value)) as object) };
}
