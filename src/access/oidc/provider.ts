import * as client from "openid-client";
import type { Clock } from "../../core/clock.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import type { Binding } from "./pending.ts";
import { isIncomplete, type Person, toPerson } from "./person.ts";
import { OidcRefusal } from "./refusal.ts";

/** Time limit of each request to the provider, in seconds. */
const TIMEOUT_S = 5;
/** Age at which the provider's metadata are read again. */
const METADATA_MS = 10 * 60_000;
/** Identifies a person: at most 255 characters (OpenID Connect Core, section 2). */
const SUBJECT = /^[^\p{Cc}\p{Cs}]{1,255}$/u;
/** Tolerated difference of clocks, in seconds. */
const CLOCK_TOLERANCE_S = 60;

export interface OidcProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Reads the client's secret, which may be in a file. */
  readonly clientSecret: () => Promise<string>;
  readonly scopes: readonly string[];
  readonly groupsClaim: string;
  /** Whether roles depend on the groups. */
  readonly needsGroups: boolean;
  readonly clock: Clock;
}

export interface AuthorizationRequest extends Binding {
  readonly redirectUri: string;
  /** Whether the provider has to ask the person to sign in again. */
  readonly asksAgain: boolean;
}

/**
 * An OpenID provider, by discovery, with the authorization code flow and PKCE. Its metadata are kept for ten minutes; its keys are read
 * at each sign-in, so that a rotation is known at once. Each request has five seconds. All methods throw an `OidcRefusal`.
 */
export class OidcProvider {
  readonly #options: OidcProviderOptions;
  #metadata: client.ServerMetadata | undefined;
  #readMs = -Infinity;
  #reading: Promise<client.ServerMetadata> | undefined;

  constructor(options: OidcProviderOptions) {
    this.#options = options;
  }

  /** The address of the provider's sign-in page. */
  async authorizationUrl({ redirectUri, state, nonce, codeVerifier, asksAgain }: AuthorizationRequest): Promise<URL> {
    const configuration = await this.#configuration();
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#options.scopes.join(" "),
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: "S256",
      ...(asksAgain && { prompt: "login", max_age: "0" }),
    });
  }

  /** Exchanges the code of the provider's answer, `callback`, for the person. */
  async redeem(callback: URL, { state, nonce, codeVerifier }: Binding): Promise<Person> {
    const configuration = await this.#configuration();
    // Signatures are also verified of tokens that come directly from the provider.
    client.enableNonRepudiationChecks(configuration);
    try {
      const tokens = await client.authorizationCodeGrant(configuration, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims()!;
      if (!SUBJECT.test(claims.sub))
        throw new OidcRefusal("invalid", { cause: new Error("sub has to be 1 to 255 characters") });
      const { groupsClaim, needsGroups } = this.#options;
      const asksUserInfo =
        isIncomplete(claims, needsGroups ? groupsClaim : undefined) &&
        configuration.serverMetadata().userinfo_endpoint !== undefined;
      const userInfo = asksUserInfo ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub) : {};
      return toPerson(claims, userInfo, { groupsClaim, idToken: tokens.id_token });
    } catch (error) {
      throw toRefusal(error);
    }
  }

  /** The address that ends the provider's session and returns to `returnTo`; undefined where the provider has none. */
  async signOutUrl(returnTo: string, idToken: string | undefined): Promise<string | undefined> {
    const configuration = await this.#configuration();
    if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
    return client.buildEndSessionUrl(configuration, {
      post_logout_redirect_uri: returnTo,
      ...(idToken !== undefined && { id_token_hint: idToken }),
    }).href;
  }

  /** Makes a configuration without keys of an earlier sign-in. */
  async #configuration(): Promise<client.Configuration> {
    const metadata = await this.#currentMetadata();
    const { clientId, clientSecret, clock } = this.#options;
    const secret = await clientSecret().catch((cause: unknown) => {
      throw new OidcRefusal("misconfigured", { cause });
    });
    const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const authentication = methods.includes("client_secret_basic")
      ? client.ClientSecretBasic(secret)
      : client.ClientSecretPost(secret);
    const configuration = new client.Configuration(metadata, clientId, this.#clientMetadata(clock), authentication);
    configuration.timeout = TIMEOUT_S;
    configuration[client.customFetch] = boundedFetch;
    if (this.#isInsecure) client.allowInsecureRequests(configuration);
    return configuration;
  }

  #clientMetadata(clock: Clock): Partial<client.ClientMetadata> {
    return {
      [client.clockTolerance]: CLOCK_TOLERANCE_S,
      [client.clockSkew]: Math.round((clock.now() - Date.now()) / 1000),
    };
  }

  /** Whether the provider is on this machine, without TLS. */
  get #isInsecure(): boolean {
    return this.#options.issuer.startsWith("http:");
  }

  async #currentMetadata(): Promise<client.ServerMetadata> {
    const { clock } = this.#options;
    if (this.#metadata !== undefined && clock.monotonic() - this.#readMs < METADATA_MS) return this.#metadata;
    return (this.#reading ??= this.#discover().finally(() => (this.#reading = undefined)));
  }

  async #discover(): Promise<client.ServerMetadata> {
    const { issuer, clientId, clock } = this.#options;
    try {
      const discovered = await client.discovery(new URL(issuer), clientId, undefined, client.None(), {
        timeout: TIMEOUT_S,
        [client.customFetch]: boundedFetch,
        ...(this.#isInsecure && { execute: [client.allowInsecureRequests] }),
      });
      const metadata = discovered.serverMetadata();
      if (metadata.issuer !== issuer)
        throw new OidcRefusal("misconfigured", {
          cause: new Error(`the provider calls itself ${metadata.issuer}; write this as sign_in.oidc.issuer`),
        });
      this.#readMs = clock.monotonic();
      return (this.#metadata = metadata);
    } catch (error) {
      throw toRefusal(error);
    }
  }
}

/** Errors of a token endpoint (RFC 6749, section 5.2) that may not occur again in a new sign-in. */
const CODE_ERRORS: ReadonlySet<string> = new Set(["invalid_grant"]);

function toRefusal(error: unknown): OidcRefusal {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof OidcRefusal) return cause;
  const options = { cause: error };
  if (error instanceof client.AuthorizationResponseError) return new OidcRefusal("declined", named(error.error, error));
  if (error instanceof client.ResponseBodyError)
    return new OidcRefusal(CODE_ERRORS.has(error.error) ? "expired" : "misconfigured", named(error.error, error));
  if (error instanceof client.ClientError && error.code === "OAUTH_TIMEOUT")
    return new OidcRefusal("unreachable", options);
  if (error instanceof client.WWWAuthenticateChallengeError)
    return new OidcRefusal("misconfigured", named(error.cause[0]?.parameters["error"], error));
  return new OidcRefusal("invalid", options);
}

/** A cause that begins with the provider's error code, such as `access_denied`, which the library's message lacks. */
function named(code: string | undefined, error: Error): ErrorOptions {
  return { cause: code === undefined ? error : new Error(code, { cause: error }) };
}
