import type { UpstreamModel } from "../../core/provider.ts";
import type { Json } from "../wire/json.ts";

/** What a host of Anthropic's models does in its own way: paths, some fields of bodies, and the place of betas. */
export interface AnthropicSite {
  /** Sent with every request; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Path of a request for messages, below the base URL. `streamed`: whether the body asks for a stream. */
  toPath(model: string, streamed: boolean): string;
  /** Path that counts input tokens. */
  readonly countPath: string;
  /** The body of a request for messages. `betas`: those of the request and the model, for a host that takes them in the body. */
  toBody(body: object, betas: readonly string[]): object;
  /** The body of a count. */
  toCountBody(body: object): object;
  /** Whether betas are sent in the header `anthropic-beta`. */
  readonly hasBetaHeader: boolean;
}

/** Anthropic's own service, and servers with the same interface. */
export const DIRECT: AnthropicSite = {
  headers: { "anthropic-version": "2023-06-01" },
  toPath: () => "/v1/messages",
  countPath: "/v1/messages/count_tokens",
  toBody: (body) => body,
  toCountBody: (body) => body,
  hasBetaHeader: true,
};

/** `anthropic_version` of every body at Vertex AI. */
const VERTEX_VERSION = { anthropic_version: "vertex-2023-10-16" } as const;

/**
 * Vertex AI of Google: the path names model and method, the body names the version. A count names its model in the body. Source:
 * `@anthropic-ai/vertex-sdk` 1.1.3, and "Use Anthropic's Claude models" in the documentation of Vertex AI, November 2026. The
 * version is the one of the documentation, whose answers are those of 2023-06-01; the client sends its own.
 */
export function vertexSite({ project, region }: { readonly project: string; readonly region: string }): AnthropicSite {
  const models = `/v1/projects/${project}/locations/${region}/publishers/anthropic/models`;
  return {
    headers: {},
    toPath: (model, streamed) => `${models}/${toSegment(model)}:${streamed ? "streamRawPredict" : "rawPredict"}`,
    countPath: `${models}/count-tokens:rawPredict`,
    toBody(body) {
      const { model: _, ...fields } = body as Json;
      return { ...fields, ...VERTEX_VERSION };
    },
    toCountBody: (body) => ({ ...body, ...VERTEX_VERSION }),
    hasBetaHeader: true,
  };
}

/** A name such as `claude-sonnet-4-5@20250929` as a segment of a path: the makers' client does not escape its `@`. */
function toSegment(name: string): string {
  return encodeURIComponent(name).replaceAll("%40", "@");
}

/** Allows `block_binding` in the body, which is only sent to models that bind reasoning to its conversation. */
const BINDING = "thinking-binding-controls-2026-08-01";

/** The betas of a request: those that the model needs, and the caller's. */
export function betasOf({ capabilities }: UpstreamModel, callers: readonly string[] = []): readonly string[] {
  return capabilities.preservedReasoning ? [BINDING, ...callers] : callers;
}
