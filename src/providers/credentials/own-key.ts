import { Failure } from "../../core/failure.ts";
import type { Upstream } from "../transport/http.ts";
import { redactionOf } from "../wire/redaction.ts";
import type { Service } from "../wire/service.ts";
import { keyHeaders } from "./api-key.ts";
import { createMerge } from "./credential.ts";

/** An account's own key for a provider. */
export interface OwnKey {
  /** Name of the provider. */
  readonly provider: string;
  /** Name of the header with the key, in lower case. */
  readonly header: string;
  /** The configured headers of the provider. */
  readonly headers: Readonly<Record<string, string>>;
  /** The key; undefined when it cannot be decrypted. Never the name of a file. */
  readonly secret: string | undefined;
}

/**
 * The service with an account's own key in place of the configured credential. It shares the connections, which are independent of
 * credentials, and its `close` does not close them.
 */
export function toOwnService(upstream: Upstream, { provider, header, headers, secret = "" }: OwnKey): Service {
  // A configured `authorization` header is the operator's credential.
  const { authorization = "", ...others } = headers;
  const own = secret === "" ? undefined : keyHeaders(secret, header);
  const merge = createMerge();
  return {
    upstream: {
      async post(request, accept) {
        // The operator's credential must not replace it: the account expects its own to be used.
        if (own === undefined) {
          if (request.progress !== undefined) request.progress.unsent = true;
          throw refused(`This account's own credential for ${provider} cannot be decrypted. Set it again.`);
        }
        const response = await upstream.post({ ...request, headers: merge(request.headers, own) }, accept);
        if (response.status !== 401) return response;
        response.abandon();
        throw refused(`The provider ${provider} refused this account's own credential.`, 401);
      },
      close: () => Promise.resolve(),
    },
    headers: others,
    redact: redactionOf([secret, authorization, ...Object.values(others)]),
  };
}

function refused(message: string, upstreamStatus?: number): Failure {
  return new Failure("upstream_refused_us", message, {
    refused: true,
    ...(upstreamStatus !== undefined && { upstreamStatus }),
  });
}
