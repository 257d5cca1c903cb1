import type { IncomingMessage, ServerResponse } from "node:http";
import { isPagePath, PATHS } from "../../../web/paths.ts";
import { Failure } from "../../core/failure.ts";
import { namesTag } from "../http/documents.ts";
import { endWithFile } from "../http/exchange.ts";
import type { BuiltFile, BuiltFiles } from "./built-files.ts";
import { checkHost, isOwnHost } from "./csrf.ts";
import { pageHeaders, referenceHeaders } from "./policy.ts";

/** The dashboard's pages and their files. */
export interface Pages {
  /** Whether a path, without a query, is a page or a file of one. */
  handles(path: string): boolean;
  /** Answers a request for such a path. Never throws. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): void;
  /** Answers a browser's request for a page that does not exist. Returns false, without an answer, for other requests. */
  handleMissing(request: IncomingMessage, response: ServerResponse): boolean;
}

const NOT_BUILT = "The dashboard is not built. Run `npm run build:web` in Parley's folder, then restart Parley.\n";

/**
 * Serves the built files: the dashboard's page at each of its addresses, and the API reference. Pages are not cached, because
 * they name the files of their build; those files have a hash in their names and are cached. `files`: undefined without a
 * build.
 */
export function createPages(files: BuiltFiles | undefined, publicUrl: URL | undefined): Pages {
  const isSecure = publicUrl?.protocol === "https:";
  const headers = pageHeaders(isSecure);
  const headersOfReference = referenceHeaders(isSecure);
  const isFile = (path: string): boolean => files?.has(path.slice(1)) === true && path.startsWith("/assets/");
  const icon = findIcon(files);
  return {
    handles: (path) =>
      isPagePath(path) || isFile(path) || isSlashed(path) || (path === ICON_PATH && icon !== undefined),
    handle(path, request, response) {
      const isReference = path === PATHS.docs;
      for (const [name, value] of isReference ? headersOfReference : headers) response.setHeader(name, value);
      const isPage = isPagePath(path);
      response.setHeader("cache-control", isFile(path) ? "public, max-age=31536000, immutable" : "no-store");
      try {
        checkHost(request.headers.host ?? "", publicUrl);
      } catch (reason) {
        return sendText(response, 403, `${Failure.from(reason).message}\n`);
      }
      if (request.method !== "GET" && request.method !== "HEAD") {
        response.setHeader("allow", "GET, HEAD");
        return sendText(response, 405, "Use GET or HEAD.\n");
      }
      if (isSlashed(path)) return sendTo(response, path.slice(0, -1) + queryOf(request));
      const page = isReference ? "docs.html" : "index.html";
      const file = path === ICON_PATH ? icon : files?.get(isPage ? page : path.slice(1));
      if (file === undefined) return sendText(response, 503, NOT_BUILT);
      sendFile(request, response, file);
    },
    handleMissing(request, response) {
      const page = files?.get("index.html");
      const isRead = request.method === "GET" || request.method === "HEAD";
      if (page === undefined || !isRead || !/\btext\/html\b/.test(request.headers.accept ?? "")) return false;
      if (!isOwnHost(request.headers.host ?? "", publicUrl)) return false;
      for (const [name, value] of headers) response.setHeader(name, value);
      response.setHeader("cache-control", "no-store");
      response.writeHead(404, { "content-type": page.type, "content-length": page.content.length });
      endWithFile(response, page.content);
      return true;
    },
  };
}

/** Default icon path of browsers. */
const ICON_PATH = "/favicon.ico";

/** The icon that the page links. */
function findIcon(files: BuiltFiles | undefined): BuiltFile | undefined {
  for (const [name, file] of files ?? []) if (/^assets\/mark-[\w-]+\.svg$/.test(name)) return file;
  return undefined;
}

/** Whether a path is a page's address with a trailing slash. */
function isSlashed(path: string): boolean {
  return path.length > 2 && path.endsWith("/") && isPagePath(path.slice(0, -1));
}

function queryOf({ url = "" }: IncomingMessage): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at);
}

function sendTo(response: ServerResponse, location: string): void {
  response.writeHead(308, { location, "content-length": 0 }).end();
}

function sendFile({ headers }: IncomingMessage, response: ServerResponse, file: BuiltFile): void {
  response.setHeader("vary", "accept-encoding");
  response.setHeader("etag", file.etag);
  if (namesTag(headers["if-none-match"], file.etag)) return void response.writeHead(304).end();
  const accepted = acceptedEncodings(headers["accept-encoding"]);
  const [encoding, content] = file.encoded.find(([name]) => accepted.has(name)) ?? [undefined, file.content];
  if (encoding !== undefined) response.setHeader("content-encoding", encoding);
  response.writeHead(200, { "content-type": file.type, "content-length": content.length });
  // Node sends no body in response to HEAD.
  endWithFile(response, content);
}

/** Encodings of an `accept-encoding` header without those of quality 0. */
function acceptedEncodings(header: string | string[] = ""): ReadonlySet<string> {
  const offers = String(header).toLowerCase().split(",");
  return new Set(
    offers.filter((offer) => !/;\s*q=0(\.0*)?\s*$/.test(offer)).map((offer) => offer.split(";")[0]!.trim()),
  );
}

function sendText(response: ServerResponse, status: number, text: string): void {
  // Errors are not cached.
  response.setHeader("cache-control", "no-store");
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "content-length": Buffer.byteLength(text) })
    .end(text);
}
