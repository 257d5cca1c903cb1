import type { AccessUnderTest } from "../../access/set-up.ts";
import { parseConfig } from "../../../src/config/parse.ts";
import { signInRulesOf } from "../../../src/gateway/access.ts";
import { oidcOf } from "../../../src/gateway/oidc.ts";
import type { Logger } from "../../../src/telemetry/logger.ts";
import { CookieBrowser, type Visited } from "../../support/cookie-browser.ts";
import { findFreePort } from "../../support/free-port.ts";
import {
  type OidcProviderOptions,
  type OidcProviderUnderTest,
  startOidcProvider,
} from "../../support/oidc-provider.ts";
import { type ConsoleUnderTest, startConsole } from "./set-up.ts";

/** A console with a real OpenID provider. */
export interface OidcSite {
  readonly site: ConsoleUnderTest;
  readonly provider: OidcProviderUnderTest;
  readonly access: AccessUnderTest;
  readonly url: string;
  /** Reasons and causes in the log. */
  readonly logged: { readonly reason: string; readonly cause: string }[];
  close(): Promise<void>;
}

export interface OidcSiteOptions extends Partial<OidcProviderOptions> {
  readonly signIn?: Readonly<Record<string, unknown>>;
  readonly oidc?: Readonly<Record<string, unknown>>;
  readonly publicUrl?: string;
}

export async function startOidcSite({
  signIn = {},
  oidc = {},
  publicUrl,
  ...ofProvider
}: OidcSiteOptions = {}): Promise<OidcSite> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const provider = await startOidcProvider({
    redirectUris: [`${publicUrl ?? url}/auth/oidc/callback`],
    signOutUris: [`${publicUrl ?? url}/sign-in`],
    ...ofProvider,
  });
  const { issuer, client } = provider;
  const ofClient = { issuer, client_id: client.clientId, client_secret: client.clientSecret, name: "Acme ID" };
  const section = { oidc: { ...ofClient, domains: ["acme.example"], ...oidc }, ...signIn };
  const config = parseConfig({ file: "parley.yaml", text: JSON.stringify({ sign_in: section }), env: {} });
  const logged: OidcSite["logged"] = [];
  const log = { warn: (fields: OidcSite["logged"][number]) => logged.push(fields) } as unknown as Logger;
  const site = await startConsole({
    port,
    ...(publicUrl !== undefined && { publicUrl }),
    signIn: signInRulesOf(config),
    oidc: (clock) => oidcOf(config.signIn, clock, log),
  });
  // The provider's clock is that of this machine.
  site.access.clock.advance(Date.now() - site.access.clock.now());
  return {
    site,
    provider,
    access: site.access,
    url,
    logged,
    async close() {
      site.close();
      await provider.stop();
    },
  };
}

export const isCallback = (address: URL): boolean => address.pathname === "/auth/oidc/callback";

/** Begins a sign-in, and fills in the provider's form. Returns the answer that redirects to the callback. */
export async function reachCallback(
  { url }: Pick<OidcSite, "url">,
  browser: CookieBrowser,
  { login, query = "", change }: { login: string; query?: string; change?: (address: URL) => void },
): Promise<Visited> {
  const begun = await browser.get(`${url}/auth/oidc/start${query}`);
  if (begun.location === undefined || begun.location.origin === url) return begun;
  change?.(begun.location);
  const form = await browser.follow(begun, isCallback);
  if (form.location !== undefined) return form;
  const [, action = ""] = /action="([^"]+)"/.exec(form.text) ?? [];
  const sent = await browser.post(new URL(action, form.url), { prompt: "login", login, password: "any" });
  return browser.follow(sent, isCallback);
}

/** Signs in; returns the answer of the callback. */
export async function signInAs(
  site: Pick<OidcSite, "url">,
  login: string,
  { browser = new CookieBrowser(), query = "" }: { browser?: CookieBrowser; query?: string } = {},
): Promise<Visited> {
  const reached = await reachCallback(site, browser, { login, query });
  return reached.location !== undefined && isCallback(reached.location) ? browser.get(reached.location) : reached;
}

/** The path that an answer leads to. */
export function pathOf({ location }: Visited): string {
  return location === undefined ? "" : location.pathname + location.search + location.hash;
}
