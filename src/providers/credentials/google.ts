import { readFile } from "node:fs/promises";
import { isObject, object, parsed, string } from "../wire/json.ts";
import { type AccessToken, isNetworkText, refusedToken, unavailableToken } from "./token.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Where a token of Google's comes from. */
export interface GoogleTokenOptions {
  /** A service account's key. Undefined: application default credentials, which the environment and the machine have. */
  readonly file: string | undefined;
}

/**
 * Gets tokens of Google Cloud. A new client each time, so that a credential that was replaced on disk is used and a refused token is
 * not returned again. The library is loaded at the first call.
 */
export function googleTokens({ file }: GoogleTokenOptions): () => Promise<AccessToken> {
  return async () => {
    try {
      const client = file === undefined ? await defaultClient() : await clientOfFile(file);
      const { token } = await client.getAccessToken();
      const { expiry_date: expiresMs } = client.credentials;
      if (typeof token !== "string" || typeof expiresMs !== "number") throw new Error("Google's answer has no token.");
      const { quotaProjectId } = client;
      return {
        token,
        expiresMs,
        ...(quotaProjectId !== undefined && { headers: { "x-goog-user-project": quotaProjectId } }),
      };
    } catch (error) {
      throw toFailure(error);
    }
  };
}

async function defaultClient() {
  const { GoogleAuth } = await import("google-auth-library");
  return new GoogleAuth({ scopes: SCOPE }).getClient();
}

async function clientOfFile(path: string) {
  const { JWT } = await import("google-auth-library");
  const key = parsed(await readFile(path, "utf8"));
  if (!isObject(key) || key["type"] !== "service_account")
    throw new Error(
      "credential_file is not the key of a service account; name other credentials in GOOGLE_APPLICATION_CREDENTIALS.",
    );
  const { client_email: email, private_key: privateKey, private_key_id: keyId, quota_project_id: quota } = key;
  return new JWT({
    email: string(email),
    key: string(privateKey),
    keyId: string(keyId),
    scopes: SCOPE,
    ...(typeof quota === "string" && { quotaProjectId: quota }),
  });
}

/** Uses only the structured fields of an answer: other texts may repeat a request. */
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
  const words = `${string(code)} ${string(message)}`;
  if (isNetworkText(words))
    return unavailableToken(`Google's token service could not be reached (${string(code) || string(name)}).`);
  // Its message repeats a piece of the file.
  if (name === "SyntaxError") return refusedToken("The file that GOOGLE_APPLICATION_CREDENTIALS names is not JSON.");
  if (words.includes("Could not load the default credentials"))
    return refusedToken(
      "There is no credential of Google Cloud: set credential_file or GOOGLE_APPLICATION_CREDENTIALS, or run where a metadata server has one.",
    );
  return refusedToken(`The credential of Google Cloud cannot be used: ${string(message).slice(0, 300)}`);
}
