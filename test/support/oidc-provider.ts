import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { type Configuration, Provider } from "oidc-provider";

/** Claims of a person by the name in the provider's login form, which accepts any password. */
type People = Record<string, Record<string, unknown>>;

export interface OidcProviderUnderTest {
  readonly issuer: string;
  readonly client: { readonly clientId: string; readonly clientSecret: string };
  /** Changes apply at the next sign-in. */
  readonly people: People;
  /** Replaces the keys: tokens are signed with the new one at once. */
  rotateKeys(): Promise<void>;
  /** Publishes a key set without the key that signs. */
  publishOtherKeys(): Promise<void>;
  /** Sets a listener that answers in place of the provider; undefined restores the provider. */
  answerWith(handler: RequestListener | undefined): void;
  /** Paths of the requests so far. */
  readonly asked: string[];
  stop(): Promise<void>;
}

export interface OidcProviderOptions {
  /** Addresses of the client's callback, which are known when it listens. */
  readonly redirectUris: readonly string[];
  readonly signOutUris?: readonly string[];
  readonly idTokenSeconds?: number;
  /** Whether every ID token has `auth_time`, even if the client did not request it. Default: true. */
  readonly saysAuthTime?: boolean;
}

const CLIENT = { clientId: "parley", clientSecret: "oidc-secret-of-the-test-client" };

/**
 * Starts the package `oidc-provider` on a free port. The issuer's host is `localhost`, a different site than 127.0.0.1.
 * There is no consent page.
 */
export async function startOidcProvider(options: OidcProviderOptions): Promise<OidcProviderUnderTest> {
  const people: People = {};
  const asked: string[] = [];
  let published: { keys: JWK[] } | undefined;
  let handler: RequestListener | undefined;
  let callback: RequestListener = () => undefined;
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    asked.push(pathname);
    if (handler !== undefined) return handler(request, response);
    if (published !== undefined && pathname === "/jwks") {
      return void response.setHeader("content-type", "application/json").end(JSON.stringify(published));
    }
    callback(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const issuer = `http://localhost:${port}`;
  const signWith = (key: JWK): void => {
    const provider = new Provider(issuer, configurationOf(options, people, key));
    const answer = provider.callback();
    callback = (request, response) => void answer(request, response);
  };
  signWith(await (firstKey ??= newKey()));
  return {
    issuer,
    client: CLIENT,
    people,
    asked,
    rotateKeys: async () => signWith(await newKey()),
    async publishOtherKeys() {
      published = { keys: [toPublic(await newKey())] };
    },
    answerWith: (next) => void (handler = next),
    stop: () => stop(server),
  };
}

function configurationOf(
  { redirectUris, signOutUris = [], idTokenSeconds = 3600, saysAuthTime = true }: OidcProviderOptions,
  people: People,
  key: JWK,
): Configuration {
  return {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [...redirectUris],
        post_logout_redirect_uris: [...signOutUris],
        require_auth_time: saysAuthTime,
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: ["signs the cookies of the test"] },
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "groups", "_claim_names"],
    },
    // Claims of scopes are in the ID token too, as with most providers.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    ttl: {
      IdToken: idTokenSeconds,
      AccessToken: 600,
      AuthorizationCode: 60,
      Interaction: 600,
      Session: 3600,
      Grant: 3600,
    },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  };
}

/** The key of every provider at first: to make one takes as long as a sign-in. */
let firstKey: Promise<JWK> | undefined;

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), use: "sig", alg: "RS256" };
}

function toPublic({ kty, n, e, kid, use, alg }: JWK): JWK {
  return { kty, n: n!, e: e!, kid: kid!, use: use!, alg: alg! } as JWK;
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
