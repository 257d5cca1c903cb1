import { FAILURE_TABLE } from "../../inbound/failure-table.ts";
import type { Format, FormatInput, PreviousAnswer, ReadCompletion, ReadCount, RequestHeaders } from "../format.ts";
import { toErrorBody } from "../openai-error.ts";
import { itemsOf, KeptStream, keepingOf, keptRoutes } from "./keep.ts";
import { previousNotFound, type ReadRequest, readResponsesRequest } from "./request.ts";
import { writeResponse } from "./response.ts";
import { EventStream } from "./stream.ts";

const PATH = "/v1/responses";
/** Status 426. Clients that try a WebSocket first continue with POST requests after it. */
const UPGRADE_REQUIRED = 426;

/** OpenAI's Responses API. Keeps answers only if that is configured (`keep.ts`). */
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
    ...keptRoutes(PATH),
  ],
  owns: (path) => path === PATH || path.startsWith(`${PATH}/`),
  writeError: (failure) => ({ status: FAILURE_TABLE[failure.code].http, body: toErrorBody(failure) }),
};

function isWebSocket({ upgrade }: RequestHeaders): boolean {
  return typeof upgrade === "string" && upgrade.toLowerCase() === "websocket";
}

function read(input: FormatInput): ReadCompletion {
  return readWith(input, toCompletion);
}

function readCount(input: FormatInput): ReadCount {
  return readWith(input, (asked) => ({
    ...asked,
    write: (inputTokens) => ({ object: "response.input_tokens", input_tokens: inputTokens }),
  }));
}

function toCompletion(asked: ReadRequest, requestId: string): ReadCompletion {
  return {
    ...asked,
    writeWhole: (completion) => writeResponse(completion, asked),
    writeStream: () => (asked.isKept ? new KeptStream(asked, requestId) : new EventStream(asked, requestId)),
    keeping: keepingOf(asked),
  };
}

/** Reads a request. A request that continues a kept answer is read again with that answer. */
function readWith<R extends object>(
  { json, requestId, keeps }: FormatInput,
  make: (asked: ReadRequest, requestId: string) => R,
): R & { readonly previous?: PreviousAnswer<R> } {
  const asked = readResponsesRequest(json, { keeps });
  const id = asked.previousId;
  if (id === "") return make(asked, requestId);
  return {
    ...make(asked, requestId),
    previous: {
      id,
      join(content) {
        if (content === undefined) throw previousNotFound(id, "It is unknown, expired or deleted.");
        return make(readResponsesRequest(json, { keeps, before: itemsOf(content) }), requestId);
      },
    },
  };
}
