import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { Failure } from "../../core/failure.ts";
import { tooLarge } from "../http/body.ts";

/** The form of an RPC's calls. */
export interface RpcShape {
  /** Whether it answers with a stream, which has its own content types. */
  readonly streams: boolean;
  readonly maxBodyBytes: number;
}

/** The parts of a request that show its origin. */
export interface RequestHeaders {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Refuses calls that a page of another site could make a browser send. A call must be a POST with a content type that no form
 * has and that needs a CORS preflight (`application/json`, `application/connect+json`), from this origin by `Sec-Fetch-Site`,
 * or by `Origin` where that is missing; clients other than browsers send neither. Against DNS rebinding its host must be an IP
 * address, localhost or the host of the public URL. Throws a Failure.
 */
export function createCsrfCheck(publicUrl: URL | undefined): (request: RequestHeaders, expected: RpcShape) => void {
  return (request, expected) => {
    const { host = "", origin } = request.headers;
    const site = request.headers["sec-fetch-site"];
    checkHost(host, publicUrl);
    requirePost(request);
    if (site !== undefined ? site !== "same-origin" : origin !== undefined && !isOwnOrigin(origin, host, publicUrl)) {
      throw forbidden("The dashboard's services accept calls from its own pages only");
    }
    checkBody(request, expected);
  };
}

/**
 * Refuses calls with an administration key that a page has made a browser send, and those in another form. A page of another site does not
 * know the key, so the host may be any: programs use addresses inside a cluster. Throws a Failure.
 */
export function checkProgram(request: RequestHeaders, expected: RpcShape): void {
  requirePost(request);
  const { headers } = request;
  if (headers.origin !== undefined || headers["sec-fetch-site"] !== undefined)
    throw new Failure("permission_denied", "Administration keys are for programs: pages must not have them.");
  checkBody(request, expected);
}

function requirePost({ method }: RequestHeaders): void {
  if (method !== "POST") throw new Failure("invalid_request", "The dashboard's services accept only POST.");
}

function checkBody({ headers }: RequestHeaders, { streams, maxBodyBytes }: RpcShape): void {
  const type = headers["content-type"] ?? "";
  if (!(streams ? STREAM_TYPE : UNARY_TYPE).test(type)) throw new Failure("invalid_request", wrongType(streams));
  if (Number(headers["content-length"] ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
}

const UNARY_TYPE = /^application\/(json|proto)\s*(;|$)/i;
const STREAM_TYPE = /^application\/connect\+(json|proto)\s*(;|$)/i;

function wrongType(streams: boolean): string {
  const prefix = streams ? "application/connect+" : "application/";
  return `The content type must be ${prefix}json or ${prefix}proto.`;
}

/** Throws a Failure for a host other than an IP address, localhost and the public URL's. */
export function checkHost(host: string, publicUrl: URL | undefined): void {
  if (isOwnHost(host, publicUrl)) return;
  throw forbidden(`The dashboard is not served for the host "${host.slice(0, 100)}"`);
}

/** Whether the host of a request is an IP address, localhost or the public URL's. */
export function isOwnHost(host: string, publicUrl: URL | undefined): boolean {
  if (publicUrl !== undefined && host.toLowerCase() === publicUrl.host) return true;
  const { hostname } = new URL(`http://${host}`);
  return hostname === "localhost" || isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

function isOwnOrigin(origin: string, host: string, publicUrl: URL | undefined): boolean {
  if (publicUrl !== undefined && origin === publicUrl.origin) return true;
  // Behind a TLS proxy the page's scheme differs from this listener's.
  return (
    origin.toLowerCase() === `http://${host}`.toLowerCase() || origin.toLowerCase() === `https://${host}`.toLowerCase()
  );
}

function forbidden(what: string): Failure {
  return new Failure("permission_denied", `${what}. Set http.public_url to the address that people use.`);
}
