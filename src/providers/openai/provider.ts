import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Answer, Provider, UpstreamCall } from "../../core/provider.ts";
import { AnswerBuilder } from "../../core/whole.ts";
import { type DialectCall, fetchStream, fetchWhole } from "../answer.ts";
import type { Upstream } from "../http.ts";
import { toOpenAiFailure } from "./failure.ts";
import { toOpenAiRequest } from "./request.ts";
import { readOpenAiChunks, readOpenAiCompletion } from "./response.ts";
import { OpenAiStreamReader } from "./stream.ts";

export interface OpenAiOptions {
  /** Its base URL ends in `/v1`, or wherever `/chat/completions` is. */
  readonly upstream: Upstream;
  /** The first one is used. None for a server that asks for none, such as a local model: then no credential is sent. */
  readonly apiKeys: readonly string[];
  /** Further headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A provider that speaks OpenAI's chat completions. */
export function openai({ upstream, apiKeys, headers = {} }: OpenAiOptions): Provider {
  const [apiKey] = apiKeys;
  const sent = {
    ...headers,
    "content-type": "application/json",
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  };

  const toCall = ({ translation, signal, idleMs }: UpstreamCall): DialectCall => ({
    path: "/chat/completions",
    headers: sent,
    body: translation.body,
    signal,
    idleMs,
    toFailure: toOpenAiFailure,
  });

  const stream = (call: UpstreamCall): AsyncIterable<readonly CompletionChunk[]> =>
    fetchStream(upstream, toCall(call), { reader: new OpenAiStreamReader(), whole: readOpenAiChunks });

  return {
    translate: toOpenAiRequest,
    stream,
    async create(call: UpstreamCall): Promise<Answer> {
      if (!call.translation.streamed) return fetchWhole(upstream, toCall(call), readOpenAiCompletion);
      const builder = new AnswerBuilder();
      for await (const chunks of stream(call)) for (const chunk of chunks) builder.add(chunk);
      return builder.build();
    },
    close: () => upstream.close(),
  };
}
