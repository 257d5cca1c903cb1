import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { CustomFetchOptions } from "openid-client";
import { lookupHost } from "../../net/host-lookup.ts";
import { limitInformational } from "../../net/informational.ts";
import { OidcRefusal } from "./refusal.ts";

/** Limit of an answer: metadata, key sets and tokens have some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** Fetches an answer of the provider with a limit of its size. Throws an `OidcRefusal` when the provider does not answer. */
export async function boundedFetch(url: string, options: CustomFetchOptions): Promise<Response> {
  const response = await readAll(url, options).catch((cause: unknown) => {
    throw new OidcRefusal("unreachable", { cause: new Error(new URL(url).origin, { cause }) });
  });
  const { status } = response;
  if (status >= 500)
    throw new OidcRefusal("unreachable", { cause: new Error(`${new URL(url).origin} answers with status ${status}`) });
  return response;
}

/** Uses `node:http`, because `fetch` reads informational (1xx) answers without a limit. */
async function readAll(url: string, { method, headers, body, signal }: CustomFetchOptions): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = new Response(body);
  const type = sent.headers.get("content-type");
  const options = {
    method,
    lookup: lookupHost,
    headers: { ...(type !== null && { "content-type": type }), ...headers },
    ...(signal && { signal }),
  };
  const bytesSent = Buffer.from(await sent.arrayBuffer());
  const request = (url.startsWith("https:") ? requestHttps : requestHttp)(url, options, resolve);
  limitInformational(request, reject);
  request.on("error", reject).end(bytesSent);
  const answer = await promise;
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) throw new Error(`the answer is larger than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  const status = answer.statusCode!;
  const found = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Response([204, 304].includes(status) ? null : Buffer.concat(pieces), { status, headers: found });
}
