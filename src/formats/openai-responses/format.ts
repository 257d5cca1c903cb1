import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format, FormatInput, ReadCompletion, ReadCount, RequestHeaders } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { readResponsesRequest } from "./request.ts";
import { writeResponse } from "./response.ts";
import { EventStream } from "./stream.ts";

const PATH = "/v1/responses";
/** Clients that try a WebSocket first go on with POST requests after this. */
const UPGRADE_REQUIRED = 426;

/** OpenAI's Responses API. Keeps nothing: each request has the whole conversation. */
export const openaiResponses: Format = {
  name: "openai-responses",
  routes: [
    { method: "POST", path: PATH, operation: () => ({ name: "completion", read }) },
    { method: "POST", path: `${PATH}/input_tokens`, operation: () => ({ name: "count", read: readCount }) },
    {
      method: "GET",
      path: PATH,
      accepts: isWebSocket,
      operation: () => ({ name: "fixed", status: UPGRADE_REQUIRED, headers: [] }),
    },
  ],
  owns: (path) => path === PATH || path.startsWith(`${PATH}/`),
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};

function isWebSocket({ upgrade }: RequestHeaders): boolean {
  return typeof upgrade === "string" && upgrade.toLowerCase() === "websocket";
}

function read({ json, requestId }: FormatInput): ReadCompletion {
  const asked = readResponsesRequest(json);
  return {
    ...asked,
    writeWhole: (completion) => writeResponse(completion, asked),
    writeStream: () => new EventStream(asked, requestId),
  };
}

function readCount({ json }: FormatInput): ReadCount {
  return {
    ...readResponsesRequest(json),
    write: (inputTokens) => ({ object: "response.input_tokens", input_tokens: inputTokens }),
  };
}
