import { Failure } from "../../core/failure.ts";
import type { Upstream } from "../transport/http.ts";
import { redactionOf } from "../wire/redaction.ts";
import type { Service } from "../wire/service.ts";
import { keyHeaders } from "./api-key.ts";
import { createMerge } from "./credential.ts";

/** A key that an account has brought. */
export interface OwnKey {
  /** Name of the provider. */
  readonly provider: string;
  /** The header with the key; in lower case. */
  readonly header: string;
  /** The configured headers of the provider. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for one that cannot be decrypted. Never the name of a file. */
  readonly secret: string | undefined;
}

/**
 * The service with an account's own key in place of the configured credential, over the same connections: a connection has no
 * credential. Its end does not close them.
 */
export function toOwnService(upstream: Upstream, { provider, header, headers, secret = "" }: OwnKey): Service {
  // A configured `authorization` is the operator's.
  const { authorization = "", ...others } = headers;
  const own = secret === "" ? undefined : keyHeaders(secret, header);
  const merge = createMerge();
  return {
    upstream: {
      async post(request, accept) {
        // Never with the operator's credential in its place: the account expects its own to be used.
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
