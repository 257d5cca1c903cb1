import type { IncomingMessage } from "node:http";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/v1/model_pb.js";

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

const CONNECT: Route = { name: "connect" };
const PREFLIGHT: Route = { name: "preflight" };

/** A route, and the method that it is served with. */
interface ServedRoute {
  readonly method: "GET" | "POST";
  readonly route: Route;
}

const CONNECT_PATHS = CONNECT_SERVICES.flatMap(({ typeName, methods }) =>
  methods.map(({ name }) => `/${typeName}/${name}`),
);

/** What is served at exactly these paths. */
const AT: ReadonlyMap<string, ServedRoute> = new Map<string, ServedRoute>([
  ["/v1/chat/completions", { method: "POST", route: { name: "chat" } }],
  ["/v1/models", { method: "GET", route: { name: "models" } }],
  ["/openapi.json", { method: "GET", route: { name: "document" } }],
  ["/healthz", { method: "GET", route: { name: "health" } }],
  ["/readyz", { method: "GET", route: { name: "ready" } }],
  ...CONNECT_PATHS.map((path): [string, ServedRoute] => [path, { method: "POST", route: CONNECT }]),
]);

/** What is served with GET below these paths: the rest says which one, if there is such a one. */
const BELOW: readonly { readonly path: string; readonly rest: string; routeOf(rest: string): Route | undefined }[] = [
  { path: "/proto/", rest: "file", routeOf: () => ({ name: "document" }) },
  {
    path: "/v1/models/",
    rest: "id",
    routeOf(rest) {
      const id = decode(rest);
      return id === undefined || id === "" ? undefined : { name: "model", id };
    },
  },
];

/** Every route there is, as `GET /v1/models/{id}`: there is no other way in. */
export const ROUTES: readonly string[] = [
  ...[...AT].map(([path, { method }]) => `${method} ${path}`),
  ...BELOW.map(({ path, rest }) => `GET ${path}{${rest}}`),
];

/** Routes for whoever asks, with nothing that a browser would ask about before. */
const WITHOUT_PREFLIGHT: ReadonlySet<Route["name"]> = new Set(["health", "ready", "document"]);

/** Whether this is a path of the Connect protocol, whose clients read errors in its own form. */
export function isConnect(path: string): boolean {
  return AT.get(path)?.route === CONNECT;
}

/** Whether pages of other origins may be allowed to call this: everything that asks for a key. */
export function isForPages(target: string): boolean {
  return target.startsWith("/v1/") || CONNECT_SERVICES.some(({ typeName }) => target.startsWith(`/${typeName}/`));
}

/** APIs that clients may expect, by the path that their requests are sent to. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ["/v1/responses", "the Responses API"],
  ["/v1/messages", "the Messages API"],
  ["/v1/embeddings", "embeddings"],
  ["/v1/completions", "the older completions API"],
  ["/v1/images/generations", "the images API"],
]);

/** No path that is nearly right is longer, and a regular expression that looks for slashes takes long for thousands of them. */
const MAX_ADVISED = 100;

/** What the caller of a path that does not exist probably wants, as sentences with a space before them. */
export function adviseOn(path: string): string {
  if (path.length > MAX_ADVISED) return "";
  const plain = path.replace(/\/+$/, "");
  if (plain === "/v1") return " This is the base URL of the API: GET /v1/models lists the models.";
  const name = NOT_OFFERED.get(plain);
  if (name !== undefined) return ` Parley does not offer ${name}; use POST /v1/chat/completions.`;
  const rest = plain.replace(/^(\/v1)*/, "");
  if (!AT.has(`/v1${rest}`)) return "";
  const advice =
    plain === rest ? "Set the client's base URL to one that ends in /v1." : "The base URL ends in /v1 once.";
  return ` Did you mean /v1${rest}? ${advice}`;
}

/**
 * Finds the route of a path, exactly as it is written but for one slash at its end: no case folding, no dot segments, no
 * doubled slashes.
 */
export function findRoute(path: string, method: string): FoundRoute {
  const exact = AT.get(path) ?? (path.startsWith("/v1/") && path.endsWith("/") ? AT.get(path.slice(0, -1)) : undefined);
  if (exact !== undefined) return only(exact.method, method, exact.route);
  const below = BELOW.find((one) => path.startsWith(one.path));
  const route = below?.routeOf(path.slice(below.path.length));
  return route === undefined ? {} : only("GET", method, route);
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

type HeaderList = readonly (readonly [name: string, value: string])[];

const NONE: HeaderList = [];

/** What pages may read of an answer besides its body. */
const EXPOSED = [
  "x-request-id",
  "parley-requested-model",
  "parley-served-model",
  "parley-attempts",
  "parley-overhead-ms",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
].join(", ");

/** Headers for pages of other origins, for the origins that the configuration allows; `*` allows all. */
export function createCors(origins: readonly string[]): (request: IncomingMessage) => HeaderList {
  const allowed = new Set(origins);
  if (allowed.size === 0) return () => NONE;
  return ({ headers, method }) => {
    const { origin } = headers;
    if (origin === undefined) return NONE;
    if (!allowed.has(origin) && !allowed.has("*")) return [["vary", "origin"]];
    // No credentials: a key is sent by the page itself, never by the browser.
    const simple = [
      ["access-control-allow-origin", origin],
      ["access-control-expose-headers", EXPOSED],
      ["vary", "origin"],
    ] as const;
    if (method !== "OPTIONS") return simple;
    const asked = headers["access-control-request-headers"] ?? "authorization, content-type";
    return [
      ...simple,
      ["access-control-allow-methods", "GET, POST"],
      ["access-control-allow-headers", asked],
      ["access-control-max-age", "600"],
    ];
  };
}
