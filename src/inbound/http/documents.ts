import { createHash } from "node:crypto";
import { extname } from "node:path";
import { endWithFile, type Exchange } from "./exchange.ts";
import { openApiDocument } from "./openapi/document.ts";
import { readProtoComments } from "./openapi/proto-schemas.ts";

/** Public files about the API, served without a key. */
export interface Documents {
  /** The file at a path, such as `/openapi.json` or `/proto/parley.binpb`; undefined when there is none. */
  find(path: string): PublicFile | undefined;
}

/** A public file. */
export interface PublicFile {
  readonly type: string;
  /** A strong validator, with its quotes. */
  readonly etag: string;
  readonly content: Buffer;
}

/** Files by their path under `/proto/`, such as `parley/v1/completion.proto`. Empty where they are not built. */
type Downloads = ReadonlyMap<string, Buffer>;

const OPENAPI = "/openapi.json";
const PROTO = "/proto/";
/** Name of the descriptor set with comments among the downloads. */
const DESCRIPTORS = "parley.binpb";

const TYPES: Readonly<Record<string, string>> = {
  ".proto": "text/plain; charset=utf-8",
  ".json": "application/json",
  ".gz": "application/gzip",
};

/** Serves `/openapi.json`, built on first use, and the proto files. `grpcPort`: the port of gRPC. Default: the configuration's default. */
export function createDocuments(downloads: Downloads, grpcPort?: () => number): Documents {
  const files = new Map<string, PublicFile>();
  for (const [name, content] of downloads) {
    files.set(PROTO + name, toFile(content, TYPES[extname(name)] ?? "application/octet-stream"));
  }
  return {
    find(path) {
      if (path === OPENAPI && !files.has(OPENAPI)) {
        const descriptors = downloads.get(DESCRIPTORS);
        const comments = descriptors === undefined ? undefined : readProtoComments(descriptors);
        const text = JSON.stringify(openApiDocument({ comments, grpcPort: grpcPort?.() }), undefined, 2);
        files.set(OPENAPI, toFile(Buffer.from(text), "application/json"));
      }
      return files.get(path);
    },
  };
}

/** Whether an `if-none-match` header names this entity tag. */
export function namesTag(header: string | undefined, etag: string): boolean {
  // Not a regular expression: skipping 15,000 spaces with one takes 100 ms.
  return header?.split(",").some((tag) => tag.trim() === etag) === true;
}

/** Sends a file, to pages of other origins too; 304 when the client has it. A caller may read nothing for `stallMs`. */
export function sendDocument(exchange: Exchange, { type, etag, content }: PublicFile, stallMs: number): void {
  const { request, response } = exchange;
  const isKnown = namesTag(request.headers["if-none-match"], etag);
  const about = isKnown ? [] : ["content-type", type, "content-length", String(content.length)];
  response.writeHead(isKnown ? 304 : 200, exchange.headerList([...about, "etag", etag], HEADERS));
  if (isKnown) response.end();
  else endWithFile(response, content, stallMs);
}

const HEADERS = [
  // Revalidated by its ETag on each use.
  ["cache-control", "public, no-cache"],
  ["access-control-allow-origin", "*"],
  ["cross-origin-resource-policy", "cross-origin"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["referrer-policy", "no-referrer"],
  ["x-content-type-options", "nosniff"],
] as const;

function toFile(content: Buffer, type: string): PublicFile {
  return { type, etag: `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`, content };
}
