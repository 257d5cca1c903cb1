import type { IncomingMessage, ServerResponse } from "node:http";
import { isPagePath, PATHS } from "../../../web/paths.ts";
import type { AccessContext, Origin } from "../../access/context.ts";
import {
  begin,
  bindingOf,
  hasState,
  localPath,
  type Pending,
  readPending,
  writePending,
} from "../../access/oidc/pending.ts";
import type { OidcProvider } from "../../access/oidc/provider.ts";
import { OidcRefusal } from "../../access/oidc/refusal.ts";
import { confirmPerson, type PersonRules, signInPerson } from "../../access/oidc/sign-in.ts";
import { placeOf, recognizeBrowser, rememberBrowser } from "../../access/known-browsers.ts";
import { hashToken, isToken } from "../../access/secret-token.ts";
import { findSession, peekSession } from "../../access/sessions.ts";
import { Failure } from "../../core/failure.ts";
import type { Calls } from "../calls.ts";
import type { Cookies } from "./cookies.ts";
import { checkHost } from "./csrf.ts";
import type { Refused } from "./refusal.ts";
import type { RpcExchange } from "./rpcs.ts";
import { describeBrowser } from "./session-service.ts";

/** The OpenID provider of the configuration. */
export interface OidcPorts {
  readonly provider: () => Promise<Pick<OidcProvider, "authorizationUrl" | "redeem" | "signOutUrl">>;
  readonly rules: PersonRules;
  /** Receives refused sign-ins, for the log. */
  readonly refused: (refusal: OidcRefusal) => void;
}

interface OidcRoutesPorts extends Omit<OidcPorts, "refused"> {
  readonly oidcRefused: OidcPorts["refused"];
  readonly access: AccessContext;
  readonly calls: Calls;
  readonly cookies: Cookies;
  readonly refused: Refused;
  readonly findNetwork: (request: IncomingMessage) => string;
}

interface OidcAddress {
  /** The public URL; undefined for the address of each request. */
  readonly address: URL | undefined;
  readonly hasTls: boolean;
}

/** The pages of the sign-in at the OpenID provider, to which a browser goes. */
export interface OidcRoutes {
  handles(path: string): boolean;
  /** Answers with a redirection. Never throws. */
  answer(exchange: RpcExchange): Promise<void>;
  /** The address that ends the provider's session; undefined where it has none, or does not answer. */
  signOutUrl(sessionHash: string, host: string): Promise<string | undefined>;
}

const START = "/auth/oidc/start";
const CALLBACK = "/auth/oidc/callback";

/** Builds the pages. A refusal goes to the sign-in page, whose text for its reason says what to do. */
export function createOidcRoutes(ports: OidcRoutesPorts, { address, hasTls }: OidcAddress): OidcRoutes {
  const { access, calls, cookies, rules } = ports;
  const originFor = (host: string): string => address?.origin ?? `${hasTls ? "https" : "http"}://${host}`;

  const start = async (request: IncomingMessage, response: ServerResponse): Promise<string> => {
    const { searchParams } = urlOf(request);
    const path = localPath(searchParams.get("return") ?? "/");
    const isPage = isPagePath(new URL(path, "http://parley.invalid").pathname);
    const token = cookies.browser.read(request.headers.cookie);
    const pending = begin({
      purpose: searchParams.has("confirm") ? "confirm" : "sign_in",
      path: isPage ? path : PATHS.home,
      browserToken: token !== undefined && isToken(token) ? token : undefined,
    });
    const provider = await ports.provider();
    const url = await provider.authorizationUrl({
      ...bindingOf(pending),
      redirectUri: originFor(request.headers.host!) + CALLBACK,
      asksAgain: pending.purpose === "confirm",
    });
    response.appendHeader("set-cookie", cookies.pending.write(writePending(pending)));
    return url.href;
  };

  /**
   * Counts an answer with a code. Sessions and known browsers have their own counts, apart from unknown browsers in their
   * network.
   */
  const enter = async (request: IncomingMessage, { purpose, browserToken }: Pending) => {
    const network = ports.findNetwork(request);
    const sessionId = purpose === "confirm" ? cookies.session.read(request.headers.cookie) : undefined;
    const found = sessionId === undefined ? undefined : await peekSession(access, sessionId);
    const ofSession = found && { turn: network, guesser: { kind: "session", hash: found.session.hash } as const };
    const { turn, guesser } = ofSession ?? placeOf(await recognizeBrowser(access, browserToken), network);
    return access.signInQueue.take(turn, () => access.throttle.enter("provider", guesser));
  };

  const callback = async (request: IncomingMessage, response: ServerResponse, pending: Pending): Promise<string> => {
    const { search, searchParams } = urlOf(request);
    if (!hasState(pending, searchParams.get("state") ?? "")) throw new OidcRefusal("expired");
    const network = ports.findNetwork(request);
    // Answers without a code cause no request to the provider.
    const attempt = searchParams.has("code") && !searchParams.has("error") ? await enter(request, pending) : undefined;
    const provider = await ports.provider();
    const url = new URL(originFor(request.headers.host!) + CALLBACK + search);
    const person = await provider.redeem(url, bindingOf(pending));
    const origin: Origin = { network, browser: describeBrowser(request.headers["user-agent"]) };
    const sessionId = cookies.session.read(request.headers.cookie);
    const arrival = { person, rules, origin };
    if (pending.purpose === "confirm") {
      await confirmPerson(access, arrival, sessionId === undefined ? undefined : await findSession(access, sessionId));
    } else {
      const started = await signInPerson(access, arrival);
      // Ends the previous session: a planted session ID must not become a signed-in one.
      if (sessionId !== undefined) await access.store.removeSession(hashToken(sessionId));
      response.appendHeader("set-cookie", cookies.session.write(started.id));
      const token = await rememberBrowser(access, started.account.id, pending.browserToken).catch(() => undefined);
      if (token !== undefined) response.appendHeader("set-cookie", cookies.browser.write(token));
    }
    await attempt?.succeeded();
    return pending.path;
  };

  const answer = async ({ request, response, path, requestId }: RpcExchange): Promise<string> => {
    const pending = path === CALLBACK ? readPending(cookies.pending.read(request.headers.cookie) ?? "") : undefined;
    const isConfirmation =
      path === CALLBACK ? pending?.purpose === "confirm" : urlOf(request).searchParams.has("confirm");
    try {
      if (path === START) return await start(request, response);
      response.appendHeader("set-cookie", cookies.pending.clear());
      if (pending === undefined) throw new OidcRefusal("expired");
      return await callback(request, response, pending);
    } catch (error) {
      const refusal = toRefusal(error);
      ports.oidcRefused(refusal);
      if (refusal.reason === "unavailable")
        ports.refused({ entrance: "console", requestId, target: path, failure: Failure.from(refusal.cause) });
      return `${isConfirmation ? PATHS.confirmed : PATHS.signIn}?problem=${refusal.reason}`;
    }
  };

  return {
    handles: (path) => path === START || path === CALLBACK,

    async answer(exchange) {
      const { request, response } = exchange;
      if (request.method !== "GET") {
        response.setHeader("allow", "GET");
        return void response.writeHead(405, { "content-length": 0 }).end();
      }
      try {
        checkHost(request.headers.host ?? "", address);
      } catch (reason) {
        const { message } = Failure.from(reason);
        return void response.writeHead(403, { "content-type": "text/plain; charset=utf-8" }).end(`${message}\n`);
      }
      const open = calls.open(undefined);
      try {
        response.writeHead(303, { location: await answer(exchange), "content-length": 0 }).end();
      } finally {
        open.close();
      }
    },

    async signOutUrl(sessionHash, host) {
      try {
        const [provider, idToken] = await Promise.all([ports.provider(), access.store.idTokenOf(sessionHash)]);
        return await provider.signOutUrl(originFor(host) + PATHS.signIn, idToken);
      } catch (error) {
        ports.oidcRefused(toRefusal(error));
        return undefined;
      }
    },
  };
}

/** The request's target, which may be an absolute URL. */
function urlOf({ url = "/" }: IncomingMessage): URL {
  return URL.parse(url, "http://parley.invalid") ?? new URL("http://parley.invalid/");
}

function toRefusal(error: unknown): OidcRefusal {
  if (error instanceof OidcRefusal) return error;
  const isLimited = Failure.from(error).code === "rate_limited";
  return new OidcRefusal(isLimited ? "rate_limited" : "unavailable", { cause: error });
}
