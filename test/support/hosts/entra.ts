import { createServer } from "node:https";
import { certificate, trustCertificate } from "./certificate.ts";
import { close, listen, type Received, replyWith, sendJson } from "./server.ts";
import { IssuedTokens } from "./tokens.ts";

/*
 * A token service like Microsoft Entra ID, for client secrets and for federated tokens (workload identity). Source: "Microsoft identity
 * platform and the OAuth 2.0 client credentials flow" and "AADSTS error codes", learn.microsoft.com, November 2026. `@azure/identity`
 * asks it when AZURE_AUTHORITY_HOST has its address, which must be https, with a certificate that the process trusts.
 */

export const TENANT = "11111111-2222-4333-8444-555555555555";
export const CLIENT = "99999999-8888-4777-8666-555555555555";
export const SECRET = "s3cret~of.the-application-0123456789";

export interface Entra {
  /** Value for AZURE_AUTHORITY_HOST. */
  readonly url: string;
  readonly tokens: IssuedTokens;
  /** Requests for a token. */
  readonly asked: Received[];
  /** Lifetime in seconds of the next tokens. */
  lifetime: number;
  close(): void;
}

export async function startEntra(): Promise<Entra> {
  const tokens = new IssuedTokens();
  const asked: Received[] = [];
  const server = createServer(
    certificate,
    replyWith((received, response) => {
      const { pathname } = new URL(received.path, entra.url);
      if (pathname === `/${TENANT}/v2.0/.well-known/openid-configuration`)
        return sendJson(response, 200, {
          token_endpoint: `${entra.url}/${TENANT}/oauth2/v2.0/token`,
          issuer: `${entra.url}/${TENANT}/v2.0`,
          authorization_endpoint: `${entra.url}/${TENANT}/oauth2/v2.0/authorize`,
          jwks_uri: `${entra.url}/${TENANT}/discovery/v2.0/keys`,
        });
      if (pathname !== `/${TENANT}/oauth2/v2.0/token`)
        return refuse(
          response,
          "invalid_request",
          "AADSTS90002: Tenant not found. Check to make sure you have it right.",
        );
      asked.push(received);
      const form = new URLSearchParams(received.text);
      const problem = problemOf(form);
      if (problem !== undefined) return refuse(response, ...problem);
      const { lifetime } = entra;
      const access_token = tokens.issue(lifetime);
      sendJson(response, 200, { token_type: "Bearer", expires_in: lifetime, ext_expires_in: lifetime, access_token });
    }),
  );
  const port = await listen(server);
  const distrust = trustCertificate();
  const entra: Entra = {
    url: `https://localhost:${port}`,
    tokens,
    asked,
    lifetime: 3_599,
    close() {
      distrust();
      close(server);
    },
  };
  return entra;
}

function problemOf(form: URLSearchParams): readonly [error: string, description: string] | undefined {
  if (form.get("grant_type") !== "client_credentials")
    return ["unsupported_grant_type", "AADSTS70003: The app requested an unsupported grant type."];
  if (form.get("client_id") !== CLIENT)
    return ["unauthorized_client", "AADSTS700016: Application with identifier was not found in the directory."];
  if (!form.get("scope")?.split(" ").includes("https://cognitiveservices.azure.com/.default"))
    return ["invalid_scope", "AADSTS70011: The provided value for the input parameter 'scope' is not valid."];
  if (form.get("client_assertion") === "federated-token-1") return undefined;
  if (form.get("client_secret") === SECRET) return undefined;
  return [
    "invalid_client",
    "AADSTS7000215: Invalid client secret provided. Ensure the secret being sent in the request is the client secret value.",
  ];
}

function refuse(response: Parameters<typeof sendJson>[0], error: string, error_description: string): void {
  sendJson(response, error === "invalid_client" ? 401 : 400, { error, error_description, error_codes: [7_000_215] });
}
