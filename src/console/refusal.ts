import type { ServerResponse } from "node:http";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { Failure } from "../core/failure.ts";
import { toConnectError } from "../edge/connect-error.ts";
import type { Refusal } from "../edge/services.ts";
import { CALL } from "./call.ts";

/** Is told of calls that did not work. */
export type Refused = (refusal: Refusal) => void;

/** Answers a request with a failure before any handler has begun to. */
export function refuse(response: ServerResponse, failure: Failure, requestId: string): void {
  if (response.destroyed || response.headersSent) return;
  const error = toConnectError(failure, requestId);
  const body = JSON.stringify(errorToJson(error, undefined));
  const status = error.code === Code.Unimplemented ? 404 : codeToHttpStatus(error.code);
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
    .end(body);
}

/**
 * Turns failures of the handlers into Connect's errors; those of the library, such as a body that is no message, are such
 * already. A stream that has begun was not refused, however it ends.
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
