import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { KeyService } from "../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../gen/parley/v1/model_pb.js";

/** The services that are served by the Connect protocol too, for browsers, curl and typed clients. */
export const CONNECT_SERVICES = [CompletionService, ModelService, KeyService] as const;

/** What one path of the HTTP entrance is for. */
export type Route =
  | { readonly name: "health" | "ready" | "chat" | "models" | "connect" | "preflight" | "document" }
  | { readonly name: "model"; readonly id: string };

/** A route, or the methods that the path has when it has no such one. */
export interface FoundRoute {
  readonly route?: Route;
  readonly allow?: string;
}

const CHAT: Route = { name: "chat" };
const MODELS: Route = { name: "models" };
const PREFLIGHT: Route = { name: "preflight" };
const CONNECT: Route = { name: "connect" };
const HEALTH: Route = { name: "health" };
const READY: Route = { name: "ready" };
const DOCUMENT: Route = { name: "document" };

/** Routes for whoever asks, with nothing that a browser would ask about before. */
const WITHOUT_PREFLIGHT: ReadonlySet<Route["name"]> = new Set(["health", "ready", "document"]);

const CONNECT_PATHS: ReadonlySet<string> = new Set(
  CONNECT_SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)),
);

/** Whether this is a path of the Connect protocol, whose clients read errors in its own form. */
export function isConnect(path: string): boolean {
  return CONNECT_PATHS.has(path);
}

/** Whether pages of other origins may be allowed to call this: everything that asks for a key. */
export function isForPages(target: string): boolean {
  return target.startsWith("/v1/") || CONNECT_SERVICES.some(({ typeName }) => target.startsWith(`/${typeName}/`));
}

/** Finds the route of a path, exactly as it is written: no case folding, no dot segments, no doubled slashes. */
export function findRoute(path: string, method: string): FoundRoute {
  switch (path) {
    case "/v1/chat/completions":
      return only("POST", method, CHAT);
    case "/v1/models":
      return only("GET", method, MODELS);
    case "/openapi.json":
      return only("GET", method, DOCUMENT);
    case "/healthz":
      return only("GET", method, HEALTH);
    case "/readyz":
      return only("GET", method, READY);
  }
  if (CONNECT_PATHS.has(path)) return only("POST", method, CONNECT);
  if (path.startsWith("/proto/")) return only("GET", method, DOCUMENT);
  const id = path.startsWith("/v1/models/") ? decode(path.slice("/v1/models/".length)) : undefined;
  return id === undefined || id === "" ? {} : only("GET", method, { name: "model", id });
}

function only(served: "GET" | "POST", method: string, route: Route): FoundRoute {
  // Node sends the head of an answer to HEAD and keeps its body back.
  if (method === served || (method === "HEAD" && served === "GET")) return { route };
  if (method === "OPTIONS" && !WITHOUT_PREFLIGHT.has(route.name)) return { route: PREFLIGHT };
  return { allow: served };
}

/** IDs with a slash come percent-encoded from the official client and raw from curl. */
function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
