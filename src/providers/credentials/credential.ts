import type { Upstream, UpstreamRequest } from "../transport/http.ts";

export type Headers = Readonly<Record<string, string>>;

/** The part of a request that a credential may depend on. */
export type RequestToAuthorize = Pick<UpstreamRequest, "path" | "headers" | "body" | "signal">;

/** Authenticates requests at a provider. */
export interface Credential {
  /**
   * Headers for one request, names in lower case. Throws or rejects with a Failure when there is no valid credential, and with the
   * reason of the request's signal.
   */
  authorize(request: RequestToAuthorize): Headers | Promise<Headers>;
  /** Texts that must not be shown. Returns a new array after each change. */
  secrets(): readonly string[];
  /**
   * Called when the service answered 401 to a request with these headers of `authorize`. Returns whether the next `authorize` will
   * return other headers, which the service may accept. Default: never.
   */
  renew?(refused: Headers): boolean;
}

/**
 * Adds a credential's headers to each request. They replace the request's headers of the same name. A request that is refused (401)
 * is sent once more if the credential can be renewed.
 */
export function authorized(upstream: Upstream, credential: Credential): Upstream {
  const merge = createMerge();
  return {
    async post(request, accept) {
      // Nothing is billed if there is no credential.
      if (request.progress !== undefined) request.progress.unsent = true;
      const given = await credential.authorize(request);
      const response = await upstream.post({ ...request, headers: merge(request.headers, given) }, accept);
      if (response.status !== 401 || credential.renew?.(given) !== true) return response;
      response.abandon();
      const renewed = await credential.authorize(request);
      return upstream.post({ ...request, headers: merge(request.headers, renewed) }, accept);
    },
    close: () => upstream.close(),
  };
}

/** Merges headers. Returns the last result again for the same objects, because the transport caches the text of headers by object. */
export function createMerge(): (first: Headers, second: Headers) => Headers {
  let last: { first: Headers; second: Headers; merged: Headers } | undefined;
  return (first, second) => {
    if (last?.first !== first || last.second !== second) last = { first, second, merged: { ...first, ...second } };
    return last.merged;
  };
}
