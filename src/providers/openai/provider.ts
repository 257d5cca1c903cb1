import type { Provider, UpstreamCall } from "../../core/provider.ts";
import { type DialectCall, fetchStream, fetchWhole } from "../answer.ts";
import type { Upstream } from "../http.ts";
import { toOpenAiFailure } from "./failure.ts";
import { toOpenAiRequest } from "./request.ts";
import { readOpenAiChunks, readOpenAiCompletion } from "./response.ts";
import { OpenAiStreamReader } from "./stream.ts";

export interface OpenAiOptions {
  /** Its base URL ends in `/v1`, or wherever `/chat/completions` is. */
  readonly upstream: Upstream;
  /**
   * The first one is used for everything: cached prefixes and stored files belong to its account. None for a server that
   * asks for none, such as a local model: then no credential is sent.
   */
  readonly apiKeys: readonly string[];
  /** Sent with every request; names in lower case. Wins over the dialect's own headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A provider that speaks OpenAI's chat completions. */
export function openai({ upstream, apiKeys: [apiKey], headers: extra }: OpenAiOptions): Provider {
  const headers = Object.freeze({
    "content-type": "application/json",
    // A compressed stream would be held back until a block of it is full.
    "accept-encoding": "identity",
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...extra,
  });

  const toCall = ({ translation, signal, idleMs }: UpstreamCall): DialectCall => ({
    path: "/chat/completions",
    headers,
    body: translation.body,
    signal,
    idleMs,
    toFailure: toOpenAiFailure,
  });

  return {
    translate: toOpenAiRequest,
    create: (call) => fetchWhole(upstream, toCall(call), readOpenAiCompletion),
    stream: (call) =>
      fetchStream(upstream, toCall(call), { reader: new OpenAiStreamReader(), whole: readOpenAiChunks }),
    close: () => upstream.close(),
  };
}
