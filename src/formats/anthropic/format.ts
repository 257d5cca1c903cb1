import type { LimitFacts } from "../../core/limiter.ts";
import { estimateTokens, measurePrompt } from "../../core/token-estimate.ts";
import type { Format, FormatInput, HeaderList, ReadCompletion, ReadCount, RequestHeaders } from "../format.ts";
import { writeError } from "./error.ts";
import { toModelInfo, toModelPage } from "./models.ts";
import { readMessagesRequest, readsHeader } from "./request.ts";
import { type AnswerForm, toMessage } from "./response.ts";
import { MessageWriter } from "./stream.ts";

const VERSION = "anthropic-version";
const MESSAGES = "/v1/messages";

const REQUEST_ID = "request-id";
const KINDS = ["requests", "tokens"] as const;

const limitHeader = (kind: (typeof KINDS)[number], what: string): string => `anthropic-ratelimit-${kind}-${what}`;

const hasVersion = (headers: RequestHeaders): boolean => headers[VERSION] !== undefined;

/** Anthropic's Messages API. It shares the path of its models with another format, which takes requests without `anthropic-version`. */
export const anthropic: Format = {
  name: "anthropic",
  routes: [
    { method: "POST", path: MESSAGES, operation: () => ({ name: "completion", read }) },
    { method: "POST", path: `${MESSAGES}/count_tokens`, operation: () => ({ name: "count", read: readCount }) },
    {
      method: "POST",
      path: "/v1/route",
      accepts: hasVersion,
      operation: () => ({ name: "explain", read: readMessagesRequest }),
    },
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
  readsHeader,
  headerNames: [
    REQUEST_ID,
    ...KINDS.flatMap((kind) => ["limit", "remaining", "reset"].map((what) => limitHeader(kind, what))),
  ],
  responseHeaders: (requestId) => [[REQUEST_ID, requestId]],
  limitHeaders,
};

function read(input: FormatInput): ReadCompletion {
  const { hidesThinking, ...asked } = readMessagesRequest(input);
  const { request, nameOf } = asked;
  // Estimated now, because the conversation is released later.
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

/** The caller's limits in the vendor's headers; `now`: milliseconds since 1970. */
function limitHeaders(limits: LimitFacts, now: number): HeaderList {
  return KINDS.flatMap((kind) => {
    const state = limits[kind];
    if (state === undefined) return [];
    const reset = new Date(now + state.resetMs).toISOString();
    return [
      [limitHeader(kind, "limit"), String(state.limit)],
      [limitHeader(kind, "remaining"), String(state.remaining)],
      [limitHeader(kind, "reset"), reset],
    ] as const;
  });
}
