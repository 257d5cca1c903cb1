/** A person, as the provider's ID token with its verified signature describes them. */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  /** Whether the provider vouches for the address. */
  readonly hasVerifiedEmail: boolean;
  /** Whether the provider also knows that the person belongs to the domain of the address. */
  readonly belongsToDomain: boolean;
  readonly name: string | undefined;
  /** Undefined when the provider sends none. */
  readonly groups: readonly string[] | undefined;
  /** Whether the provider left the groups out, because there are too many. */
  readonly omitsGroups: boolean;
  /** Time of the person's last authentication at the provider, in Unix milliseconds; undefined when it does not say. */
  readonly authenticatedAtMs: number | undefined;
  /** The ID token, for the sign-out at the provider; undefined for a very long one. */
  readonly idToken: string | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

const MAX_ID_TOKEN = 8 * 1024;

/** Verifies any address once when a personal account is made with it, and then vouches for it for good, also of former employees. */
const GOOGLE = "https://accounts.google.com";

/** Whether the ID token lacks claims that the UserInfo endpoint may have. */
export function isIncomplete(claims: Claims, groupsClaim: string | undefined): boolean {
  return (
    claims["email"] === undefined || !isVerified(claims) || (groupsClaim !== undefined && !(groupsClaim in claims))
  );
}

/** Converts the claims of an ID token, over those of the UserInfo endpoint. */
export function toPerson(idClaims: Claims, userInfo: Claims, { groupsClaim, idToken }: PersonOptions): Person {
  // The address and whether it is verified have to come from the same source.
  const source =
    idClaims["email"] !== undefined && (isVerified(idClaims) || userInfo["email"] === undefined) ? idClaims : userInfo;
  const claims: Claims = { ...userInfo, ...idClaims };
  const authTime = idClaims["auth_time"];
  return {
    issuer: String(idClaims["iss"]),
    subject: String(idClaims["sub"]),
    email: textOf(source["email"]),
    hasVerifiedEmail: isVerified(source),
    belongsToDomain: claims["iss"] !== GOOGLE || isOfGoogle(source),
    name: textOf(claims["name"]),
    groups: groupsOf(claims[groupsClaim]),
    omitsGroups: claims[groupsClaim] === undefined && namesGroups(claims["_claim_names"], groupsClaim),
    authenticatedAtMs: typeof authTime === "number" && Number.isFinite(authTime) ? authTime * 1000 : undefined,
    idToken: idToken !== undefined && idToken.length <= MAX_ID_TOKEN ? idToken : undefined,
  };
}

export interface PersonOptions {
  readonly groupsClaim: string;
  readonly idToken: string | undefined;
}

/** Microsoft Entra ID has no `email_verified`; its claim for a verified owner of the domain is `xms_edov`. */
function isVerified({ email_verified: verified, xms_edov: ofDomainOwner }: Claims): boolean {
  return (
    verified === true || (verified === undefined && [true, 1, "1", "true"].some((value) => value === ofDomainOwner))
  );
}

/** Google names the organisation (`hd`) of accounts whose domain it hosts. */
function isOfGoogle({ hd, email }: Claims): boolean {
  return textOf(hd) !== undefined || /@(?:gmail|googlemail)\.com$/i.test(String(email));
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" ? claim : undefined;
}

/** A single group may be a text instead of a list. */
function groupsOf(claim: unknown): readonly string[] | undefined {
  if (typeof claim === "string") return [claim];
  return Array.isArray(claim) ? claim.filter((group) => typeof group === "string") : undefined;
}

/** Entra names claims that do not fit in the token, with an address to ask for them (a distributed claim). */
function namesGroups(claimNames: unknown, groupsClaim: string): boolean {
  return typeof claimNames === "object" && claimNames !== null && groupsClaim in claimNames;
}
