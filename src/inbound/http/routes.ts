import type { IncomingMessage } from "node:http";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { type Format, type FormatRoute, type Operation, type RequestHeaders } from "../../formats/format.ts";
import { FORMATS } from "../../formats/formats.ts";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingService } from "../../../gen/parley/v1/embedding_pb.js";
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import { ModelService } from "../../../gen/parley/v1/model_pb.js";

/** The services that are served by the Connect protocol too, for browsers, curl and typed clients. */
export const CONNECT_SERVICES = [CompletionService, EmbeddingService, ModelService, KeyService] as const;

/** Names of the routes. */
export type Route =
  | { readonly name: "health" }
  | { readonly name: "ready" }
  | { readonly name: "connect" }
  | { readonly name: "preflight" }
  | { readonly name: "document" }
  | { readonly name: "format"; readonly format: Format; readonly operation: Operation };

/** A route, or the allowed methods of a path without the requested one. */
export interface FoundRoute {
  readonly route?: Route;
  readonly allow?: string;
}

const CONNECT: Route = { name: "connect" };
const PREFLIGHT: Route = { name: "preflight" };

/** A route and its methods. */
interface ServedRoute {
  readonly methods: readonly FormatRoute["method"][];
  readonly route: Route;
}

/** A route of a format, with the format. */
interface OfFormat {
  readonly format: Format;
  readonly route: FormatRoute;
  /** The route at a path without a name. */
  readonly found: FoundRoute | undefined;
}

/** Routes of the formats by their paths; those of equal paths together. */
function formatRoutes(): ReadonlyMap<string, readonly OfFormat[]> {
  const routes = new Map<string, OfFormat[]>();
  for (const format of FORMATS) {
    for (const route of format.routes) {
      const found = route.path.includes("{") ? undefined : toFound({ format, route }, "");
      routes.set(route.path, [...(routes.get(route.path) ?? []), { format, route, found }]);
    }
  }
  return routes;
}

function toFound({ format, route }: Pick<OfFormat, "format" | "route">, name: string): FoundRoute {
  return { route: { name: "format", format, operation: route.operation(name) } };
}

const FORMATS_AT = formatRoutes();

/** Paths with `{name}`: what is before and after it. Longer ends first. */
const NAMED_PATHS = [...FORMATS_AT]
  .filter(([path]) => path.includes("{"))
  .map(([path, routes]) => ({
    start: path.slice(0, path.indexOf("{")),
    end: path.slice(path.indexOf("}") + 1),
    routes,
  }))
  .toSorted((one, other) => other.end.length - one.end.length);

/** Calls without side effects may be GET requests too. */
const CONNECT_ROUTES = CONNECT_SERVICES.flatMap(({ typeName, methods }) =>
  methods.map(({ name, idempotency }): [path: string, served: ServedRoute] => [
    `/${typeName}/${name}`,
    {
      methods: idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? ["POST", "GET"] : ["POST"],
      route: CONNECT,
    },
  ]),
);

/** Routes of exact paths. */
const AT: ReadonlyMap<string, ServedRoute> = new Map<string, ServedRoute>([
  ["/openapi.json", { methods: ["GET"], route: { name: "document" } }],
  ["/healthz", { methods: ["GET"], route: { name: "health" } }],
  ["/readyz", { methods: ["GET"], route: { name: "ready" } }],
  ...CONNECT_ROUTES,
]);

/** Beginning of the paths of the contract's files. */
const FILES = "/proto/";

/** All routes, such as `GET /v1/models/{id}`. */
export const ROUTES: readonly string[] = [
  ...new Set(FORMATS.flatMap(({ routes }) => routes.map(({ method, path }) => `${method} ${path}`))),
  ...[...AT].flatMap(([path, { methods }]) => methods.map((method) => `${method} ${path}`)),
  `GET ${FILES}{file}`,
];

/** Public routes without CORS preflight. */
const WITHOUT_PREFLIGHT: ReadonlySet<Route["name"]> = new Set(["health", "ready", "document"]);

/** Whether this is a path of the Connect protocol, which has its own error format. */
export function isConnect(path: string): boolean {
  return AT.get(path)?.route === CONNECT;
}

/** Whether pages of other origins may be allowed to call this path: all that need a key. */
export function isForPages(target: string): boolean {
  return (
    target.startsWith("/v1/") ||
    target.startsWith("/v1beta/") ||
    CONNECT_SERVICES.some(({ typeName }) => target.startsWith(`/${typeName}/`))
  );
}

/** Names of APIs that are not offered, by path. */
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([["/v1/completions", "the older completions API"]]);

/** Longest path that gets advice; a regular expression takes 100 ms for 15,000 slashes. */
const MAX_ADVISED = 100;

/** Advice for an unknown path, as sentences with a leading space; empty without any. */
export function adviseOn(path: string): string {
  if (path.length > MAX_ADVISED) return "";
  const plain = path.replace(/\/+$/, "");
  if (plain === "/v1") return " This is the base URL of the API: GET /v1/models lists the models.";
  const name = NOT_OFFERED.get(plain);
  if (name !== undefined) return ` Parley does not offer ${name}; use POST /v1/chat/completions.`;
  const rest = plain.replace(/^(\/v1)*/, "");
  if (!FORMATS_AT.has(`/v1${rest}`)) return "";
  const advice =
    plain === rest ? "Set the client's base URL to one that ends in /v1." : "The base URL ends in /v1 once.";
  return ` Did you mean /v1${rest}? ${advice}`;
}

/**
 * Finds the route of a path by exact match, with one optional trailing slash: no case folding, no dot segments, no double
 * slashes.
 */
export function findRoute(path: string, method: string, headers: RequestHeaders = {}): FoundRoute {
  const exact = AT.get(path);
  if (exact !== undefined) return only(exact.methods, method, exact.route);
  if (path.startsWith(FILES)) return only(["GET"], method, { name: "document" });
  const plain = path.startsWith("/v1/") && path.endsWith("/") ? path.slice(0, -1) : path;
  const found = FORMATS_AT.get(path) ?? FORMATS_AT.get(plain);
  if (found !== undefined) return ofFormats(found, "", { method, headers });
  for (const { start, end, routes } of NAMED_PATHS) {
    if (!path.startsWith(start) || !path.endsWith(end)) continue;
    const name = decode(path.slice(start.length, path.length - end.length));
    if (name === undefined || name === "") continue;
    const named = routes.filter(({ route: { isName } }) => isName?.(name) ?? true);
    if (named.length > 0) return ofFormats(named, name, { method, headers });
  }
  return {};
}

/** The path of a served route, with `{…}` in place of a name. */
export function templateOf(path: string): string {
  if (AT.has(path) || FORMATS_AT.has(path)) return path;
  const named = NAMED_PATHS.find(({ start, end }) => path.startsWith(start) && path.endsWith(end));
  // Otherwise it has a slash at its end.
  return named?.routes[0]!.route.path ?? path.replace(/\/$/, "");
}

/** The route of the first format that accepts the request. */
function ofFormats(
  routes: readonly OfFormat[],
  name: string,
  { method, headers }: { readonly method: string; readonly headers: RequestHeaders },
): FoundRoute {
  // Node sends the head only in response to HEAD.
  const wanted = method === "HEAD" ? "GET" : method;
  for (const one of routes) {
    if (one.route.method === wanted && isAccepted(one.route, headers)) return one.found ?? toFound(one, name);
  }
  const methods = new Set(routes.filter(({ route }) => isAccepted(route, headers)).map(({ route }) => route.method));
  if (methods.size === 0) return {};
  return method === "OPTIONS" ? { route: PREFLIGHT } : { allow: [...methods].join(", ") };
}

function isAccepted(route: FormatRoute, headers: RequestHeaders): boolean {
  return route.accepts?.(headers) ?? true;
}

/** The format in which an answer at a path is written. */
export function formatOf(path: string, headers: RequestHeaders): Format {
  return FORMATS.find((format) => format.owns(path, headers))!;
}

function only(served: ServedRoute["methods"], method: string, route: Route): FoundRoute {
  // Node sends the head only in response to HEAD.
  if (served.some((one) => one === (method === "HEAD" ? "GET" : method))) return { route };
  if (method === "OPTIONS" && !WITHOUT_PREFLIGHT.has(route.name)) return { route: PREFLIGHT };
  return { allow: served.join(", ") };
}

/** IDs with a slash: percent-encoded by the official client, raw by curl. */
function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

type HeaderList = readonly (readonly [name: string, value: string])[];

const NONE: HeaderList = [];

/** Response headers that pages may read. */
const EXPOSED = [
  "x-request-id",
  "parley-requested-model",
  "parley-served-model",
  "parley-attempts",
  "parley-overhead-ms",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  ...["requests", "tokens"].flatMap((kind) =>
    ["limit", "remaining", "reset"].map((what) => `x-ratelimit-${what}-${kind}`),
  ),
  "grpc-status",
  "grpc-message",
  "grpc-status-details-bin",
  ...FORMATS.flatMap(({ headerNames = [] }) => headerNames),
].join(", ");

/** CORS headers for the configured origins; `*` allows all. */
export function createCors(origins: readonly string[]): (request: IncomingMessage) => HeaderList {
  const allowed = new Set(origins);
  if (allowed.size === 0) return () => NONE;
  return ({ headers, method }) => {
    const { origin } = headers;
    if (origin === undefined) return NONE;
    if (!allowed.has(origin) && !allowed.has("*")) return [["vary", "origin"]];
    // No credentials: pages send keys in a header, browsers never do.
    const simple = [
      ["access-control-allow-origin", origin],
      ["access-control-expose-headers", EXPOSED],
      ["vary", "origin"],
    ] as const;
    if (method !== "OPTIONS") return simple;
    const asked = headers["access-control-request-headers"] ?? "authorization, content-type";
    return [
      ...simple,
      ["access-control-allow-methods", "GET, POST, DELETE"],
      ["access-control-allow-headers", asked],
      ["access-control-max-age", "600"],
    ];
  };
}
