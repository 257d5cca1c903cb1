import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { Failure } from "../../core/failure.ts";
import { toConnectError } from "../error-details.ts";
import { retryAfterMs } from "../failure-table.ts";
import { type BodySource, endAfterBody, hasUnreadBody } from "../http/body.ts";
import type { Refusal } from "../services.ts";
import { CALL } from "./call.ts";

/** Receives refused calls. */
export type Refused = (refusal: Refusal) => void;

/** A refused call. */
export interface RefusalForm extends BodySource {
  readonly requestId: string;
  /** Content type of a stream's messages; undefined for a unary call. */
  readonly streamType: string | undefined;
}

/**
 * Answers a request with a failure, before its handler has begun. Clients of a stream read the failure from the end of the
 * stream; of another response they would see the status only.
 */
export function refuse(failure: Failure, { request, response, requestId, streamType }: RefusalForm): void {
  if (response.destroyed || response.headersSent) return;
  const error = toConnectError(failure, requestId);
  const json = errorToJson(error, undefined);
  const isStream = streamType !== undefined;
  const status = isStream ? 200 : error.code === Code.Unimplemented ? 404 : codeToHttpStatus(error.code);
  const body = isStream ? endOfStream(json) : Buffer.from(JSON.stringify(json));
  const waitMs = isStream ? undefined : retryAfterMs(failure);
  const headers = {
    "content-type": streamType ?? "application/json",
    "content-length": String(body.length),
    ...(waitMs !== undefined && { "retry-after": String(Math.ceil(waitMs / 1_000)) }),
  };
  if (!hasUnreadBody(request, failure)) return void response.writeHead(status, headers).end(body);
  response.writeHead(status, { ...headers, connection: "close" }).write(body);
  endAfterBody({ request, response });
}

/** The last message of a Connect stream: flag, length, JSON. */
function endOfStream(error: JsonValue): Buffer {
  const message = Buffer.from(JSON.stringify({ error }));
  const head = Buffer.from([END_OF_STREAM, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const END_OF_STREAM = 0b10;

/**
 * Translates failures of handlers into Connect errors; errors of the library, such as for an undecodable body, are Connect
 * errors already. A stream that has begun is not recorded as refused.
 */
export function translateFailures(refused: Refused): Interceptor {
  return (next) => async (request) => {
    const translate = (reason: unknown, { begun }: { readonly begun: boolean }): ConnectError => {
      if (reason instanceof ConnectError) return reason;
      const failure = Failure.from(reason);
      const requestId = request.contextValues.get(CALL)?.requestId ?? "";
      const target = `/${request.service.typeName}/${request.method.name}`;
      const isNews = failure.code === "internal" || (!begun && failure.code !== "cancelled");
      if (isNews) refused({ entrance: "console", requestId, target, failure });
      return toConnectError(failure, requestId);
    };
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: translated(response.message, translate) } : response;
    } catch (reason) {
      throw translate(reason, { begun: false });
    }
  };
}

type Translate = (reason: unknown, state: { readonly begun: boolean }) => ConnectError;

async function* translated<T>(messages: AsyncIterable<T>, translate: Translate): AsyncGenerator<T> {
  let begun = false;
  try {
    for await (const message of messages) {
      begun = true;
      yield message;
    }
  } catch (reason) {
    throw translate(reason, { begun });
  }
}
