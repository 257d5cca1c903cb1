import type { CustomFetchOptions } from "openid-client";
import { OidcRefusal } from "./refusal.ts";

/** Metadata, key sets and tokens have some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/** Fetches an answer of the provider with a limit of its size. Throws an `OidcRefusal` when the provider does not answer. */
export async function boundedFetch(url: string, options: CustomFetchOptions): Promise<Response> {
  const [response, body] = await readAll(url, options).catch((cause: unknown) => {
    throw new OidcRefusal("unreachable", { cause: new Error(new URL(url).origin, { cause }) });
  });
  const { status, headers } = response;
  if (status >= 500)
    throw new OidcRefusal("unreachable", { cause: new Error(`${new URL(url).origin} answers with status ${status}`) });
  return new Response([204, 304].includes(status) ? null : body, { status, headers });
}

async function readAll(url: string, options: CustomFetchOptions): Promise<[Response, Buffer<ArrayBuffer>]> {
  const response = await fetch(url, options as RequestInit);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) throw new Error(`the answer is larger than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return [response, Buffer.concat(pieces)];
}
