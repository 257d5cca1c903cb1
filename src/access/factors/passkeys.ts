import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { Failure, invalidField } from "../../core/failure.ts";
import { checkName, unknownId } from "../checks.ts";
import type { AccessContext, Origin } from "../context.ts";
import type { SignedIn } from "../sessions.ts";
import { CHALLENGE_MS, isChallenge, issueChallenge, spendChallenge } from "./challenges.ts";
import type { PasskeyRecord } from "./factor-store.ts";
import { factorSessionOf, lastFactor, originOf, requireOwnFactors, sessionEnded } from "./own-factors.ts";

const MAX_PASSKEYS = 20;
const MAX_RESPONSE_CHARS = 16 * 1024;
const BASE64URL = /^[\w-]+$/;

/** Where passkeys are valid. */
export interface PasskeySite {
  /** The host name. */
  readonly rpId: string;
  /** Such as `https://parley.example.com`. */
  readonly origin: string;
}

/** Returns the site, or throws `invalid_request` for an address at which there are no passkeys. */
export function requireSite(site: PasskeySite | undefined): PasskeySite {
  if (site !== undefined) return site;
  throw new Failure(
    "invalid_request",
    "Passkeys need the dashboard at its http.public_url with https, or at localhost: an IP address has none.",
  );
}

/** The options of a new passkey, as JSON. Throws `permission_denied` and `invalid_request`. */
export async function beginPasskey(context: AccessContext, signedIn: SignedIn, site: PasskeySite): Promise<string> {
  const { account, session } = requireOwnFactors(context, signedIn);
  const { generateRegistrationOptions } = await library();
  const passkeys = await context.store.listPasskeys(account.id);
  if (passkeys.length >= MAX_PASSKEYS) throw tooMany();
  const options = await generateRegistrationOptions({
    rpName: "Parley",
    rpID: site.rpId,
    userName: account.email ?? account.id,
    userDisplayName: account.name,
    userID: bytesOf(Buffer.from(account.id)),
    challenge: bytesOf(await issueChallenge(context, `add ${session.hash}`)),
    timeout: CHALLENGE_MS,
    attestationType: "none",
    excludeCredentials: passkeys.map(({ id, transports }) => ({ id, transports: [...transports] })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  return JSON.stringify(options);
}

/** A passkey that a browser has made. */
export interface NewPasskey {
  readonly signedIn: SignedIn;
  readonly name: string;
  /** `RegistrationResponseJSON`. */
  readonly response: string;
  readonly site: PasskeySite;
}

/**
 * Adds a passkey. The session has a second factor from then on, and the account's other sessions without one end. Throws `invalid_request`;
 * `unauthenticated` for a session that has ended meanwhile.
 */
export async function addPasskey(
  context: AccessContext,
  { signedIn, name, response: text, site }: NewPasskey,
  origin: Origin,
): Promise<PasskeyRecord> {
  const { account, session } = requireOwnFactors(context, signedIn);
  const { store, clock, log } = context;
  const checkedName = checkName(name.trim());
  const response = readResponse(text, "response_json") as RegistrationResponseJSON;
  let challenge = "";
  const { verifyRegistrationResponse } = await library();
  const verified = await withoutAttestation(response)
    .then((unattested) =>
      verifyRegistrationResponse({
        response: unattested,
        expectedChallenge: (given) => isChallenge(context, (challenge = given), `add ${session.hash}`),
        expectedOrigin: site.origin,
        expectedRPID: site.rpId,
        requireUserVerification: true,
      }),
    )
    .catch(() => undefined);
  if (verified?.verified !== true || !(await spendChallenge(context, challenge)))
    throw invalidField("response_json", "is not valid, or was used already; try again");
  const { id, publicKey, counter, transports } = verified.registrationInfo.credential;
  const passkey: PasskeyRecord = {
    id,
    accountId: account.id,
    name: checkedName,
    publicKey: Buffer.from(publicKey).toString("base64url"),
    counter,
    transports: Array.isArray(transports) ? transports.filter((each) => typeof each === "string").slice(0, 10) : [],
    createdAtMs: clock.now(),
    usedAtMs: undefined,
  };
  const added = await store.insertPasskey(passkey, MAX_PASSKEYS, factorSessionOf(context, signedIn));
  if (added === "taken") throw tooMany();
  if (added === "session ended") throw sessionEnded();
  const details = { passkey: checkedName };
  await log.record({ action: "passkey_added", ...originOf(signedIn, origin), details });
  return passkey;
}

/**
 * Removes the attestation statement, which the options do not ask for. The library would accept a chain of certificates that the caller
 * has made, and fetch the revocation lists at the addresses in it. Rejects for a response that it cannot decode.
 */
async function withoutAttestation(given: RegistrationResponseJSON): Promise<RegistrationResponseJSON> {
  const { isoBase64URL, isoCBOR } = await import("@simplewebauthn/server/helpers");
  const { response } = given;
  const attested = isoCBOR.decodeFirst<Map<string, Uint8Array>>(isoBase64URL.toBuffer(response.attestationObject));
  const unattested = new Map<string, string | Uint8Array | Map<string, string>>([
    ["fmt", "none"],
    ["attStmt", new Map<string, string>()],
    ["authData", attested.get("authData")!],
  ]);
  const attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(unattested));
  return { ...given, response: { ...response, attestationObject } };
}

/** Removes an own passkey. Throws `invalid_request` for an unknown one, and for the last factor where one is required. */
export async function removePasskey(
  context: AccessContext,
  { signedIn, id }: { readonly signedIn: SignedIn; readonly id: string },
  origin: Origin,
): Promise<void> {
  const { store, log, signIn } = context;
  const accountId = signedIn.account.id;
  const passkey = (await store.listPasskeys(accountId)).find((each) => each.id === id);
  const keepsLast = signIn.secondFactor === "required";
  const removed = passkey && (await store.removePasskey(accountId, id, { keepsLast }));
  if (passkey === undefined || removed === "unknown") throw unknownId("passkey", id.slice(0, 100));
  if (removed === "last") throw lastFactor("id");
  const details = { passkey: passkey.name };
  await log.record({ action: "passkey_removed", ...originOf(signedIn, origin), details });
}

/** Returns the options for the use of a passkey, as JSON; in a session they allow only the account's own passkeys. */
export async function passkeyOptions(
  context: AccessContext,
  signedIn: SignedIn | undefined,
  { rpId }: PasskeySite,
): Promise<string> {
  const { generateAuthenticationOptions } = await library();
  const passkeys = signedIn === undefined ? [] : await context.store.listPasskeys(signedIn.account.id);
  const options = await generateAuthenticationOptions({
    rpID: rpId,
    challenge: bytesOf(await issueChallenge(context, purposeOf(signedIn))),
    timeout: CHALLENGE_MS,
    allowCredentials: passkeys.map(({ id, transports }) => ({ id, transports: [...transports] })),
    userVerification: "required",
  });
  return JSON.stringify(options);
}

/** The use of a passkey. */
export interface PasskeyUse {
  /** `AuthenticationResponseJSON`. */
  readonly response: string;
  readonly site: PasskeySite;
  /** The session in which the person confirms their identity; undefined for a sign-in. */
  readonly signedIn: SignedIn | undefined;
  /** Name of the request's field, for failures. */
  readonly field: string;
}

/**
 * Verifies the use of a passkey, and notes it. Returns the passkey that the response names, undefined for an unknown one, and whether
 * the use is valid. Throws `invalid_request` for a response that cannot be read.
 */
export async function verifyPasskey(
  context: AccessContext,
  { response: text, site, signedIn, field }: PasskeyUse,
): Promise<{ readonly passkey: PasskeyRecord | undefined; readonly isValid: boolean }> {
  const { store, clock } = context;
  const response = readResponse(text, field) as AuthenticationResponseJSON;
  const passkey = await store.findPasskey(response.id);
  if (passkey === undefined) return { passkey, isValid: false };
  const { verifyAuthenticationResponse } = await library();
  let challenge = "";
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: (given) => isChallenge(context, (challenge = given), purposeOf(signedIn)),
    expectedOrigin: site.origin,
    expectedRPID: site.rpId,
    credential: {
      id: passkey.id,
      publicKey: bytesOf(Buffer.from(passkey.publicKey, "base64url")),
      counter: passkey.counter,
    },
    requireUserVerification: true,
  }).catch(() => undefined);
  // Some devices send no user handle, as null.
  const handle: string | null | undefined = response.response?.userHandle;
  const isOwn =
    handle === undefined || handle === null || Buffer.from(handle, "base64url").toString() === passkey.accountId;
  if (verified?.verified !== true || !isOwn || !(await spendChallenge(context, challenge)))
    return { passkey, isValid: false };
  const use = { counter: verified.authenticationInfo.newCounter, atMs: clock.now() };
  return { passkey, isValid: await store.usePasskey(passkey, use) };
}

/** The purpose to which a challenge is bound: a sign-in, or the confirmation in one session. */
function purposeOf(signedIn: SignedIn | undefined): string {
  return signedIn === undefined ? "sign in" : `confirm ${signedIn.session.hash}`;
}

/** Reads a response of the browser; the library checks the rest of it. */
function readResponse(text: string, field: string): { readonly id: string } {
  const wrong = invalidField(field, "must be the browser's response to the options, as JSON");
  if (text === "" || text.length > MAX_RESPONSE_CHARS) throw wrong;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrong;
  }
  const id = (value as { id?: unknown } | null)?.id;
  if (typeof id !== "string" || !BASE64URL.test(id)) throw wrong;
  return value as { readonly id: string };
}

/** Imported on demand: few processes ever need it. */
function library() {
  return import("@simplewebauthn/server");
}

/** Converts to the type that the library takes: bytes that no other thread can change. */
function bytesOf(buffer: Buffer): Uint8Array<ArrayBuffer> {
  return new Uint8Array(buffer);
}

function tooMany(): Failure {
  return invalidField("response_json", `was added already, or there are ${MAX_PASSKEYS} passkeys: remove one first`);
}
