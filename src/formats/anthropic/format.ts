import type { LimitFacts } from "../../core/limiter.ts";
import { estimateTokens, measurePrompt } from "../../core/token-estimate.ts";
import type { Format, FormatInput, HeaderList, ReadCompletion, ReadCount, RequestHeaders } from "../format.ts";
import { writeError } from "./error.ts";
import { toModelInfo, toModelPage } from "./models.ts";
import { readMessagesRequest } from "./request.ts";
import { type AnswerForm, toMessage } from "./response.ts";
import { MessageWriter } from "./stream.ts";

const VERSION = "anthropic-version";
const MESSAGES = "/v1/messages";

const hasVersion = (headers: RequestHeaders): boolean => headers[VERSION] !== undefined;

/** Anthropic's Messages API. Its models are at paths of another format, which requests have that name no version. */
export const anthropic: Format = {
  name: "anthropic",
  routes: [
    { method: "POST", path: MESSAGES, operation: () => ({ name: "completion", read }) },
    { method: "POST", path: `${MESSAGES}/count_tokens`, operation: () => ({ name: "count", read: readCount }) },
    {
      method: "GET",
      path: "/v1/models",
      accepts: hasVersion,
      operation: () => ({ name: "models", write: toModelPage }),
    },
    {
      method: "GET",
      path: "/v1/models/{id}",
      accepts: hasVersion,
      operation: (id) => ({ name: "model", id, write: toModelInfo }),
    },
  ],
  owns: (path, headers) => path === MESSAGES || path.startsWith(`${MESSAGES}/`) || hasVersion(headers),
  writeError,
  responseHeaders: (requestId) => [["request-id", requestId]],
  limitHeaders,
};

function read(input: FormatInput): ReadCompletion {
  const { hidesThinking, ...asked } = readMessagesRequest(input);
  const { request, nameOf } = asked;
  // Before the conversation is released.
  const inputTokens = asked.stream ? estimate(request) : 0;
  const form: AnswerForm = { nameOf, hidesThinking, inputTokens };
  return {
    ...asked,
    writeWhole: (completion) => JSON.stringify(toMessage(completion, form)),
    writeStream: () => new MessageWriter({ ...form, requestId: input.requestId }),
  };
}

function estimate(request: ReadCompletion["request"]): number {
  return Math.ceil(estimateTokens(measurePrompt(request)));
}

function readCount(input: FormatInput): ReadCount {
  return { ...readMessagesRequest(input), write: (inputTokens) => ({ input_tokens: inputTokens }) };
}

const KINDS = ["requests", "tokens"] as const;

/** The caller's limits, as the vendor names them; `now`: milliseconds since 1970. */
function limitHeaders(limits: LimitFacts, now: number): HeaderList {
  return KINDS.flatMap((kind) => {
    const state = limits[kind];
    if (state === undefined) return [];
    const prefix = `anthropic-ratelimit-${kind}`;
    const reset = new Date(now + state.resetMs).toISOString();
    return [
      [`${prefix}-limit`, String(state.limit)],
      [`${prefix}-remaining`, String(state.remaining)],
      [`${prefix}-reset`, reset],
    ] as const;
  });
}
