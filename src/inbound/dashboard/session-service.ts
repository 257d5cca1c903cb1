import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type OpenSessionSchema,
  type SessionSchema,
  type SessionService,
  SignUpMode as SignUpMessage,
} from "../../../gen/parley/console/v1/session_pb.js";
import type { SessionRecord } from "../../access/account-store.ts";
import type { AccessContext, SignUpMode } from "../../access/context.ts";
import { findInvitation } from "../../access/invitations.ts";
import { rememberBrowser } from "../../access/known-browsers.ts";
import type { PasskeySite } from "../../access/factors/passkeys.ts";
import { changePassword } from "../../access/password-change.ts";
import { PERMISSIONS, permitsEverywhere } from "../../access/permissions.ts";
import { areResetsOffered } from "../../access/password-reset.ts";
import { hashToken } from "../../access/secret-token.ts";
import {
  freshUntilMs,
  isSecondFactorDue,
  listSessions,
  type SignedIn,
  signOut,
  signOutElsewhere,
  type StartedSession,
} from "../../access/sessions.ts";
import { reauthenticate, signIn, type UsedPasskey } from "../../access/sign-in.ts";
import { signInByLink } from "../../access/sign-in-link.ts";
import type { SignInRules } from "../../access/sign-in-rules.ts";
import { signUp } from "../../access/sign-up.ts";
import { toAccountMessage } from "./account-messages.ts";
import { toBaseMessage } from "./role-service.ts";
import { callOf, signedInOf } from "./call.ts";
import type { Cookies } from "./cookies.ts";
import type { SiteFinder } from "./passkey-site.ts";
import { toMembershipMessage } from "./team-messages.ts";

interface SessionServicePorts {
  readonly access: AccessContext;
  readonly cookies: Cookies;
  /** Where passkeys are valid, by the host of a request. */
  readonly siteOf: SiteFinder;
  /** The address of the sign-out at the OpenID provider for a session that began there; undefined where there is none. */
  readonly providerSignOut: (sessionHash: string, host: string) => Promise<string | undefined>;
}

/** Begins a session in the browser of a call: sets the cookies, and returns the answer. */
export function createBeginning(access: AccessContext, cookies: Cookies) {
  return async (started: StartedSession, context: HandlerContext) => {
    const { sessionId, browserToken } = callOf(context);
    // Ends the previous session: a planted session ID must not become a signed-in one.
    if (sessionId !== undefined) await access.store.removeSession(hashToken(sessionId));
    context.responseHeader.append("set-cookie", cookies.session.write(started.id));
    // A browser that could not be stored is only unknown at its next sign-in.
    const token = await rememberBrowser(access, started.account.id, browserToken).catch(() => undefined);
    if (token !== undefined) context.responseHeader.append("set-cookie", cookies.browser.write(token));
    return { session: sessionMessageOf(started, access.signIn) };
  };
}

/** Sign-up, sign-in and sign-out. The session ID is sent in its cookie only. */
export function createSessionService({
  access,
  cookies,
  siteOf,
  providerSignOut,
}: SessionServicePorts): ServiceImpl<typeof SessionService> {
  let claimed = false;
  const toSessionMessage = (signedIn: SignedIn) => sessionMessageOf(signedIn, access.signIn);
  const begin = createBeginning(access, cookies);
  return {
    async signUp({ email, password, name, invitationToken: token, setupToken }, context) {
      return begin(await signUp(access, { email, password, name, token, setupToken }, callOf(context)), context);
    },

    async signIn({ email, password, code }, context) {
      return begin(await signIn(access, { email, password, code }, callOf(context)), context);
    },

    async signInByLink({ token }, context) {
      return begin(await signInByLink(access, token, callOf(context)), context);
    },

    async signOut(_, context) {
      const { sessionId, signedIn, ...origin } = callOf(context);
      const host = context.requestHeader.get("host") ?? "";
      const isByProvider = signedIn?.session.method === "oidc";
      const providerUrl = isByProvider ? await providerSignOut(signedIn.session.hash, host) : undefined;
      if (sessionId !== undefined) await signOut(access, sessionId, origin);
      context.responseHeader.append("set-cookie", cookies.session.clear());
      return { providerUrl: providerUrl ?? "" };
    },

    async getSession(_, context) {
      const { signedIn, isForwarded } = callOf(context);
      claimed ||= await access.store.isClaimed();
      return {
        ...(signedIn !== undefined && { session: toSessionMessage(signedIn) }),
        signUpMode: SIGN_UP_MODES[access.signUp],
        needsOwner: !claimed,
        needsSetupToken: !claimed && (access.isExposed || isForwarded),
        providerName: access.signIn.provider?.name ?? "",
        acceptsPasswords: access.signIn.password,
        acceptsPasskeys: access.signIn.password && siteOf(context) !== undefined,
        offersPasswordReset: areResetsOffered(access),
      };
    },

    async getInvitation({ token }, context) {
      const find = () => access.signInQueue.take(callOf(context).network, () => findInvitation(access, token));
      const invitation = access.signUp === "closed" ? undefined : await find();
      return { valid: invitation !== undefined, email: invitation?.email ?? "" };
    },

    async reauthenticate({ password, passkeyJson }, context) {
      const proof = { signedIn: signedInOf(context), password, passkey: passkeyOf(passkeyJson, siteOf(context)) };
      return { session: toSessionMessage(await reauthenticate(access, proof, callOf(context))) };
    },

    async changePassword({ currentPassword: current, newPassword: next, passkeyJson }, context) {
      const passkey = passkeyOf(passkeyJson, siteOf(context));
      const change = { signedIn: signedInOf(context), current, passkey, next };
      return begin(await changePassword(access, change, callOf(context)), context);
    },

    async listSessions(_, context) {
      const signedIn = signedInOf(context);
      const sessions = await listSessions(access, signedIn);
      return { sessions: sessions.map((session) => toOpenSessionMessage(session, signedIn)) };
    },

    async signOutElsewhere(_, context) {
      return { ended: await signOutElsewhere(access, signedInOf(context), callOf(context)) };
    },
  };
}

function passkeyOf(response: string, site: PasskeySite | undefined): UsedPasskey | undefined {
  return response === "" ? undefined : { response, site };
}

/** Sign-up modes of settings by those of the contract. */
export const SIGN_UP_MODES: Readonly<Record<SignUpMode, SignUpMessage>> = {
  open: SignUpMessage.OPEN,
  invited: SignUpMessage.INVITED,
  closed: SignUpMessage.CLOSED,
};

function toOpenSessionMessage(
  { hash, createdAtMs, lastSeenAtMs, network = "", browser = "" }: SessionRecord,
  { session }: SignedIn,
): MessageInitShape<typeof OpenSessionSchema> {
  return {
    createTime: timestampFromMs(createdAtMs),
    lastUseTime: timestampFromMs(lastSeenAtMs),
    network,
    browser,
    current: hash === session.hash,
  };
}

function sessionMessageOf(signedIn: SignedIn, rules: SignInRules): MessageInitShape<typeof SessionSchema> {
  const { session, account, memberships, customRole } = signedIn;
  return {
    account: { ...toAccountMessage(account), ...(customRole && { customRoleBase: toBaseMessage(customRole) }) },
    freshUntil: timestampFromMs(freshUntilMs(session)),
    expireTime: timestampFromMs(session.createdAtMs + rules.sessionMs),
    byProvider: session.method === "oidc",
    secondFactorDue: isSecondFactorDue({ session }, rules),
    teams: memberships.map(toMembershipMessage),
    permissions: PERMISSIONS.filter((permission) => permitsEverywhere(signedIn, permission)),
    customRoleName: customRole?.name ?? "",
  };
}

const MAX_LENGTH = 100;
/** Characters of a `User-Agent` that are read. Those of browsers have some 200. */
const MAX_READ = 500;

/** The first match counts: most browsers also claim to be others. */
const BROWSERS = [
  ["Edge", /\bEdgA?\//],
  ["Opera", /\bOPR\//],
  ["Firefox", /\b(Firefox|FxiOS)\//],
  ["Chrome", /\b(Chrome|Chromium|HeadlessChrome|CriOS)\//],
  ["Safari", /\bVersion\/[\d.]+ .*\bSafari\//],
] as const;

const SYSTEMS = [
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["macOS", /\bMac OS X\b/],
  ["Linux", /\bLinux\b/],
] as const;

/**
 * Describes a browser by its `User-Agent`, such as `Firefox on Linux`; other clients by the header without control characters.
 * Undefined without the header.
 */
export function describeBrowser(userAgent = ""): string | undefined {
  const read = userAgent.slice(0, MAX_READ);
  const [browser, system] = [BROWSERS, SYSTEMS].map((known) => known.find(([, pattern]) => pattern.test(read))?.[0]);
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const text = read
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, " ")
    .trim()
    .slice(0, MAX_LENGTH)
    .toWellFormed();
  return text === "" ? undefined : text;
}
