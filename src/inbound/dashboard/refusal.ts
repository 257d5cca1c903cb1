import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import { Failure } from "../../core/failure.ts";
import { toConnectError } from "../error-details.ts";
import { type BodySource, endAfterBody, hasUnreadBody } from "../http/body.ts";
import type { Refusal } from "../services.ts";
import { CALL } from "./call.ts";

/** Is told of calls that did not work. */
export type Refused = (refusal: Refusal) => void;

/** How a call is refused. */
export interface RefusalForm extends BodySource {
  readonly requestId: string;
  /** The content type of a stream's messages; undefined where none was asked for. */
  readonly streamType: string | undefined;
}

/**
 * Answers a request with a failure before any handler has begun to. Who asks for a stream only reads what the stream says,
 * so there it is its end; of any other answer its client would see no more than the status.
 */
export function refuse(failure: Failure, { request, response, requestId, streamType }: RefusalForm): void {
  if (response.destroyed || response.headersSent) return;
  const error = toConnectError(failure, requestId);
  const json = errorToJson(error, undefined);
  const isStream = streamType !== undefined;
  const status = isStream ? 200 : error.code === Code.Unimplemented ? 404 : codeToHttpStatus(error.code);
  const body = isStream ? endOfStream(json) : Buffer.from(JSON.stringify(json));
  const headers = { "content-type": streamType ?? "application/json", "content-length": body.length };
  if (!hasUnreadBody(request, failure)) return void response.writeHead(status, headers).end(body);
  response.writeHead(status, { ...headers, connection: "close" }).write(body);
  endAfterBody({ request, response });
}

/** The last message of a stream of Connect's protocol: always JSON, after a flag that says so and its length. */
function endOfStream(error: JsonValue): Buffer {
  const message = Buffer.from(JSON.stringify({ error }));
  const head = Buffer.from([END_OF_STREAM, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

const END_OF_STREAM = 0b10;

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
