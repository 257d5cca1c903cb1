import { readFile } from "node:fs/promises";
import { Failure } from "../../core/failure.ts";
import { isObject, object, parsed, string } from "../wire/json.ts";
import { type AccessToken, isNetworkText, MAX_TOKEN_BYTES, refusedToken, unavailableToken } from "./token.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** The source of Google's tokens. */
export interface GoogleTokenOptions {
  /**
   * File with a service account's key, or with the configuration of another credential, such as workload identity. Undefined:
   * application default credentials of the environment and the machine.
   */
  readonly file: string | undefined;
}

/**
 * Gets tokens of Google Cloud. Creates a new client for each token, so that a credential that was replaced on disk is used, and a
 * refused token is not returned from a cache. The library is loaded at the first call.
 */
export function googleTokens({ file }: GoogleTokenOptions): (signal: AbortSignal) => Promise<AccessToken> {
  return async (signal) => {
    try {
      const client = (file === undefined ? undefined : await accountOfFile(file)) ?? (await clientOf(file));
      limit(client as unknown as Client, { signal, size: MAX_TOKEN_BYTES });
      const { token } = await client.getAccessToken();
      const { expiry_date: expiresMs } = client.credentials;
      if (typeof token !== "string" || typeof expiresMs !== "number")
        throw refusedToken("Google's answer has no token.");
      const { quotaProjectId } = client;
      return {
        token,
        expiresMs,
        ...(quotaProjectId !== undefined && { headers: { "x-goog-user-project": quotaProjectId } }),
      };
    } catch (error) {
      throw error instanceof Failure ? error : toFailure(error);
    }
  };
}

/** The parts of a client that make requests. The library passes request options only to the client itself, not to its inner clients. */
interface Client {
  readonly transporter: Requests;
  /** Only of an external account. */
  readonly stsCredential?: { readonly transporter: Requests };
  /** Only of an impersonated account. */
  readonly sourceClient?: Client;
}

interface Requests {
  readonly defaults: object;
}

/** Sets the limits of all requests that the client will make. */
function limit(
  { transporter, stsCredential, sourceClient }: Client,
  limits: { readonly signal: AbortSignal; readonly size: number },
): void {
  Object.assign(transporter.defaults, limits);
  if (stsCredential !== undefined) Object.assign(stsCredential.transporter.defaults, limits);
  if (sourceClient !== undefined) limit(sourceClient, limits);
}

async function clientOf(keyFile: string | undefined) {
  const { GoogleAuth } = await import("google-auth-library");
  // A given project ID keeps the library from asking for one before the limits are set. Nothing else uses it.
  const options = { scopes: SCOPE, projectId: "none" };
  return new GoogleAuth(keyFile === undefined ? options : { ...options, keyFile }).getClient();
}

/** The service account whose key is in the file; undefined for a file of another type. */
async function accountOfFile(path: string) {
  const { JWT } = await import("google-auth-library");
  const key = parsed(await readFile(path, "utf8"));
  if (!isObject(key)) throw refusedToken("credential_file has no JSON object.");
  if (key["type"] !== "service_account") return undefined;
  const { client_email: email, private_key: privateKey, private_key_id: keyId, quota_project_id: quota } = key;
  return new JWT({
    email: string(email),
    key: string(privateKey),
    keyId: string(keyId),
    scopes: SCOPE,
    ...(typeof quota === "string" && { quotaProjectId: quota }),
  });
}

/** Converts an error. Uses only structured fields of the answer, because other texts may contain a request or a program's output. */
function toFailure(error: unknown) {
  const { response, code, name, message } = object(error);
  const { status, data } = object(response);
  if (typeof status === "number") {
    const { error: word, error_description: description } = object(data);
    const said = [string(word), string(description)].filter(Boolean).join(": ").slice(0, 300);
    const text = `Google's token service answered with HTTP ${status}${said === "" ? "" : ` (${said})`}.`;
    return status === 429 || status >= 500
      ? unavailableToken(text)
      : refusedToken(
          `${text} Check the service account's key, or the credential that GOOGLE_APPLICATION_CREDENTIALS names.`,
        );
  }
  const said = string(message);
  if (isNetworkText(`${string(code)} ${said}`))
    return unavailableToken(`Google's token service could not be reached (${string(code) || string(name)}).`);
  // The error's own message would quote the file.
  if (name === "SyntaxError") return refusedToken("The file that GOOGLE_APPLICATION_CREDENTIALS names is not JSON.");
  if (said.includes("Could not load the default credentials"))
    return refusedToken(
      "There is no credential of Google Cloud: set credential_file or GOOGLE_APPLICATION_CREDENTIALS, or run where a metadata server has one.",
    );
  if (code === "ENOENT" || code === "EACCES")
    return refusedToken(`The file with the credential cannot be read (${code}).`);
  // Other messages may contain a program's output with a token.
  const kind = [string(name), string(code)].filter(Boolean).join(" ");
  return refusedToken(
    `The credential of Google Cloud cannot be used (${kind}). Check credential_file, or the file that GOOGLE_APPLICATION_CREDENTIALS names.`,
  );
}
