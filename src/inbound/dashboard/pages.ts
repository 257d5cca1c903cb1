import type { IncomingMessage, ServerResponse } from "node:http";
import { Failure } from "../../core/failure.ts";
import type { BuiltFile, BuiltFiles } from "./built-files.ts";
import { checkHost } from "./csrf.ts";
import { pageHeaders } from "./security-headers.ts";
import { isPagePath } from "../../../web/paths.ts";

/** The dashboard's pages and their files. */
export interface Pages {
  /** Whether the path, without a query, is one of theirs. */
  handles(path: string): boolean;
  /** Answers one request for such a path. Never throws. */
  handle(path: string, request: IncomingMessage, response: ServerResponse): void;
}

const NOT_BUILT =
  "The dashboard is not built. `npm run build:web`, in Parley's folder, builds it or says why it cannot; restart Parley then.\n";

/**
 * Serves the built files: one page at every address that the app in it knows, never stored because it names the files of its
 * own build, and those files under names that change with their content. `files` is undefined when nothing is built.
 */
export function createPages(files: BuiltFiles | undefined, publicUrl: URL | undefined): Pages {
  const headers = pageHeaders(publicUrl?.protocol === "https:");
  return {
    handles: (path) => isPagePath(path) || (files?.has(path.slice(1)) === true && path.startsWith("/assets/")),
    handle(path, request, response) {
      for (const [name, value] of headers) response.setHeader(name, value);
      const isPage = isPagePath(path);
      response.setHeader("cache-control", isPage ? "no-store" : "public, max-age=31536000, immutable");
      try {
        checkHost(request.headers.host ?? "", publicUrl);
      } catch (reason) {
        return sendText(response, 403, `${Failure.from(reason).message}\n`);
      }
      if (request.method !== "GET" && request.method !== "HEAD") {
        response.setHeader("allow", "GET, HEAD");
        return sendText(response, 405, "Pages are read with GET.\n");
      }
      const file = files?.get(isPage ? "index.html" : path.slice(1));
      if (file === undefined) return sendText(response, 503, NOT_BUILT);
      sendFile(request, response, file);
    },
  };
}

function sendFile({ headers }: IncomingMessage, response: ServerResponse, file: BuiltFile): void {
  response.setHeader("vary", "accept-encoding");
  response.setHeader("etag", file.etag);
  if (headers["if-none-match"]?.split(/\s*,\s*/).includes(file.etag)) return void response.writeHead(304).end();
  const accepted = acceptedEncodings(headers["accept-encoding"]);
  const [encoding, content] = file.encoded.find(([name]) => accepted.has(name)) ?? [undefined, file.content];
  if (encoding !== undefined) response.setHeader("content-encoding", encoding);
  // Node sends no body in answer to HEAD.
  response.writeHead(200, { "content-type": file.type, "content-length": content.length }).end(content);
}

/** The encodings that a header names, but for those that it names to refuse. */
function acceptedEncodings(header: string | string[] = ""): ReadonlySet<string> {
  const offers = String(header).toLowerCase().split(",");
  return new Set(
    offers.filter((offer) => !/;\s*q=0(\.0*)?\s*$/.test(offer)).map((offer) => offer.split(";")[0]!.trim()),
  );
}

function sendText(response: ServerResponse, status: number, text: string): void {
  // Nothing that is wrong stays so in a cache.
  response.setHeader("cache-control", "no-store");
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "content-length": Buffer.byteLength(text) })
    .end(text);
}
