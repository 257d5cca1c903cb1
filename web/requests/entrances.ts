import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";

/** Display names of the endpoints. */
export const ENTRANCES: Readonly<Record<string, string>> = {
  http: "HTTP",
  connect: "Connect",
  grpc: "gRPC",
  console: "Playground",
};

/** Display names of the formats of requests over HTTP. */
const FORMATS: Readonly<Record<string, string>> = {
  "openai-chat": "Chat Completions",
  "openai-responses": "Responses",
  "openai-embeddings": "Embeddings",
  "openai-images": "Images",
  anthropic: "Messages",
  gemini: "Gemini",
};

/** The endpoint with the format of the request, where it is known: `HTTP · Chat Completions`. */
export function describeEndpoint({ entrance, format }: Pick<LoggedRequest, "entrance" | "format">): string {
  const name = ENTRANCES[entrance] ?? entrance;
  return format === "" ? name : `${name} · ${FORMATS[format] ?? format}`;
}
