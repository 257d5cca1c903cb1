import type { UpstreamModel } from "../../core/provider.ts";
import type { Json } from "../wire/json.ts";
import type { Framing } from "../wire/response.ts";
import type { SseEvent } from "../wire/sse.ts";
import type { toFailure } from "./failure.ts";

/** The differences between hosts of Anthropic's models: paths, some fields of bodies, and the place of betas. */
export interface AnthropicSite {
  /** Headers of every request, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Path of a request for messages, below the base URL. `streamed`: whether the body asks for a stream. */
  toPath(model: string, streamed: boolean): string;
  /** Path that counts input tokens. */
  toCountPath(model: string): string;
  /** Field with the number in the response of a count. */
  readonly countField: string;
  /** The body of a request for messages. `betas`: betas of the request and the model, for hosts that take them in the body. */
  toBody(body: object, betas: readonly string[]): object;
  /** The body of a count. */
  toCountBody(body: object): object;
  /** Whether betas are sent in the header `anthropic-beta`. */
  readonly hasBetaHeader: boolean;
  /** How streams are written. Default: server-sent events. */
  readonly framing?: Framing<SseEvent>;
  /** Maps a refusal. Default: as of Anthropic's own service. */
  readonly toFailure?: typeof toFailure;
}

/** Anthropic's own service, and servers with the same interface. */
export const DIRECT: AnthropicSite = {
  headers: { "anthropic-version": "2023-06-01" },
  toPath: () => "/v1/messages",
  toCountPath: () => "/v1/messages/count_tokens",
  countField: "input_tokens",
  toBody: (body) => body,
  toCountBody: (body) => body,
  hasBetaHeader: true,
};

/** `anthropic_version` of every body at Vertex AI. */
const VERTEX_VERSION = { anthropic_version: "vertex-2023-10-16" } as const;

/**
 * Vertex AI of Google: the path names model and method, the body names the version. A count names its model in the body. Source:
 * `@anthropic-ai/vertex-sdk` 1.1.3, and "Use Anthropic's Claude models" in the documentation of Vertex AI, November 2026. The
 * version is the documented one, whose answers have the format of 2023-06-01.
 */
export function vertexSite({ project, region }: { readonly project: string; readonly region: string }): AnthropicSite {
  const models = `/v1/projects/${project}/locations/${region}/publishers/anthropic/models`;
  return {
    headers: {},
    toPath: (model, streamed) => `${models}/${toSegment(model)}:${streamed ? "streamRawPredict" : "rawPredict"}`,
    toCountPath: () => `${models}/count-tokens:rawPredict`,
    countField: "input_tokens",
    toBody(body) {
      const { model: _, ...fields } = body as Json;
      return { ...fields, ...VERTEX_VERSION };
    },
    toCountBody: (body) => ({ ...body, ...VERTEX_VERSION }),
    hasBetaHeader: true,
  };
}

/** A name such as `claude-sonnet-4-5@20250929` as a path segment. Google's client does not escape the `@`. */
function toSegment(name: string): string {
  return encodeURIComponent(name).replaceAll("%40", "@");
}

/** Allows `block_binding` in the body, which is only sent to models that bind reasoning to its conversation. */
const BINDING = "thinking-binding-controls-2026-08-01";

/** The betas of a request: those that the model needs, and the caller's. */
export function betasOf({ capabilities }: UpstreamModel, callers: readonly string[] = []): readonly string[] {
  return capabilities.preservedReasoning ? [BINDING, ...callers] : callers;
}
