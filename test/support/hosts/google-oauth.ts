import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { createServer as createProxy } from "node:http";
import { createServer } from "node:https";
import { connect } from "node:net";
import { certificate, trustCertificate } from "./certificate.ts";
import { close, listen, type Received, replyWith, sendJson } from "./server.ts";
import { IssuedTokens } from "./tokens.ts";

/*
 * A token service like https://oauth2.googleapis.com/token for service accounts (RFC 7523). It checks signature, audience, scope and
 * times of the assertion. `google-auth-library` 11.3.4 has the service's address built in, so that it is reached through a proxy, by
 * HTTPS_PROXY, with a certificate that the process trusts. Source: "Using OAuth 2.0 for Server to Server Applications",
 * developers.google.com, November 2026.
 */

const HOST = "oauth2.googleapis.com";
const AUDIENCE = `https://${HOST}/token`;
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EMAIL = "parley@acme-1.iam.gserviceaccount.com";

const { privateKey, publicKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const foreign = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

/** The content of a service account's file. */
export const serviceAccount = {
  type: "service_account",
  project_id: "acme-1",
  private_key_id: "key-1",
  private_key: privateKey,
  client_email: EMAIL,
  client_id: "100000000000000000001",
  token_uri: AUDIENCE,
};
/** The same account with a private key that does not belong to it. */
export const forgedAccount = { ...serviceAccount, private_key: foreign.privateKey };

export interface GoogleOAuth {
  /** Value for HTTPS_PROXY. */
  readonly proxyUrl: string;
  readonly tokens: IssuedTokens;
  readonly asked: Received[];
  /** Lifetime in seconds of the next tokens. */
  lifetime: number;
  /** Error response in place of a token; undefined for none. */
  failure: { readonly status: number; readonly body: object } | undefined;
  close(): void;
}

export async function startGoogleOAuth(): Promise<GoogleOAuth> {
  const tokens = new IssuedTokens();
  const asked: Received[] = [];
  const server = createServer(
    certificate,
    replyWith((received, response) => {
      asked.push(received);
      const { lifetime, failure } = oauth;
      if (failure !== undefined) return sendJson(response, failure.status, failure.body);
      const problem = received.path === "/token" ? problemOf(received.text) : "Not found";
      if (problem !== undefined) return sendJson(response, 400, { error: "invalid_grant", error_description: problem });
      sendJson(response, 200, { access_token: tokens.issue(lifetime), expires_in: lifetime, token_type: "Bearer" });
    }),
  );
  const port = await listen(server);
  const proxy = createProxy((_, response) => response.writeHead(405).end());
  proxy.on("connect", ({ url }, socket, head) => {
    if (url !== `${HOST}:443`) return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    const upstream = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on("error", () => socket.destroy());
    socket.on("error", () => upstream.destroy());
  });
  const proxyPort = await listen(proxy);
  const distrust = trustCertificate();
  const oauth: GoogleOAuth = {
    proxyUrl: `http://127.0.0.1:${proxyPort}`,
    tokens,
    asked,
    lifetime: 3_599,
    failure: undefined,
    close() {
      distrust();
      close(proxy);
      close(server);
    },
  };
  return oauth;
}

/** Returns the service's error text for an invalid assertion; undefined for a valid one. */
function problemOf(text: string): string | undefined {
  const form = new URLSearchParams(text);
  if (form.get("grant_type") !== GRANT) return "Bad Request";
  const [head = "", payload = "", signature = ""] = (form.get("assertion") ?? "").split(".");
  const read = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${payload}`),
    createPublicKey(publicKey),
    Buffer.from(signature, "base64url"),
  );
  if (read(head)["alg"] !== "RS256" || !isSigned) return "Invalid JWT Signature.";
  const { iss, aud, scope, iat, exp } = read(payload);
  const now = Date.now() / 1000;
  if (iss !== EMAIL) return "Invalid grant: account not found";
  if (aud !== AUDIENCE) return "Invalid JWT: Failed audience check.";
  if (scope !== SCOPE) return "Invalid OAuth scope or ID token audience provided.";
  if (Number(iat) > now + 60 || Number(exp) < now || Number(exp) - Number(iat) > 3_600)
    return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.";
  return undefined;
}
