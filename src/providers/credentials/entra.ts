import type { DefaultAzureCredentialOptions } from "@azure/identity";
import { object, string } from "../wire/json.ts";
import { type AccessToken, isNetworkText, readAnswer, refusedToken, unavailableToken } from "./token.ts";

const SCOPE = "https://cognitiveservices.azure.com/.default";

/** The error code of Microsoft Entra ID and its first sentence, in an error's description. */
const ENTRA_ERROR = /AADSTS\d+:? ?[^.\r\n]{0,200}/;

/**
 * Gets tokens of Microsoft Entra ID for Azure OpenAI with the default credentials: environment variables, workload identity, managed
 * identity, or the login of a developer's tools. Creates a new client for each token, so that a refused token is not returned from a
 * cache. The library is loaded at the first call.
 */
export function entraTokens(): (signal: AbortSignal) => Promise<AccessToken> {
  return async (abortSignal) => {
    try {
      const { DefaultAzureCredential } = await import("@azure/identity");
      // The authority is Microsoft's, or the one in AZURE_AUTHORITY_HOST, so Microsoft's list of authorities is not needed.
      const credential = new DefaultAzureCredential({
        disableInstanceDiscovery: true,
        additionalPolicies: [{ policy: limitedTo(abortSignal), position: "perRetry" }],
      });
      const { token, expiresOnTimestamp } = await credential.getToken(SCOPE, { abortSignal });
      return { token, expiresMs: expiresOnTimestamp };
    } catch (error) {
      throw toFailure(error);
    }
  };
}

type Policy = NonNullable<DefaultAzureCredentialOptions["additionalPolicies"]>[number]["policy"];

/** Ends requests with the signal and bounds their answers, which the library does not. Has no effect for managed identities. */
function limitedTo(abortSignal: AbortSignal): Policy {
  return {
    name: "parley-limits",
    async sendRequest(request, next) {
      request.abortSignal = abortSignal;
      // Infinity means every status.
      request.streamResponseStatusCodes = new Set([Infinity]);
      const { readableStreamBody, ...response } = await next(request);
      const body = await readAnswer(readableStreamBody as AsyncIterable<Buffer>);
      return { ...response, bodyAsText: body.toString() };
    },
  };
}

function toFailure(error: unknown) {
  const { name, message: text } = object(error);
  const message = string(text);
  const said = ENTRA_ERROR.exec(message)?.[0];
  if (said !== undefined)
    return refusedToken(
      `Microsoft Entra ID refused the gateway's credential (${said}). Check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret, certificate or token that belongs to them.`,
    );
  if (name === "AggregateAuthenticationError" || name === "CredentialUnavailableError")
    return refusedToken(
      "There is no credential for Microsoft Entra ID: set api_keys, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run with a managed or workload identity.",
    );
  // The library has the same message for both.
  if (isNetworkText(message))
    return unavailableToken(
      "Microsoft Entra ID could not be reached, or has no such tenant. Check the network, AZURE_TENANT_ID and AZURE_AUTHORITY_HOST.",
    );
  return refusedToken(`Microsoft Entra ID gave no token (${string(name)}). Check the identity and its settings.`);
}
