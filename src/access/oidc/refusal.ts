/** Why the OpenID provider's sign-in has failed: each has a text on the sign-in page. */
export type RefusalReason =
  /** No answer in time, or an error of the provider's server. */
  | "unreachable"
  /** The person, or the provider's policy, has refused. */
  | "declined"
  /** Begun too long ago, in another browser, or completed already. */
  | "expired"
  /** The provider refuses the client: its ID, secret or address is wrong. */
  | "misconfigured"
  /** An answer that is not valid: issuer, audience, nonce, time or signature. */
  | "invalid"
  /** No verified e-mail address. */
  | "unverified"
  /** The address has no account, and none is made for its domain. */
  | "no_account"
  /** The address has an account that is not linked to this person. */
  | "not_linked"
  /** The groups of the person have no role. */
  | "no_role"
  /** The provider leaves the groups out, because there are too many. */
  | "too_many_groups"
  | "disabled"
  /** The confirmation is by another person than the one who is signed in. */
  | "other_person"
  /** The provider does not say when it last authenticated the person. */
  | "no_auth_time"
  /** The provider did not ask the person again. */
  | "not_asked"
  | "rate_limited"
  /** Parley's database does not answer, or an internal error. */
  | "unavailable";

/** A failed sign-in at the OpenID provider. The cause is for the log. */
export class OidcRefusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, options?: ErrorOptions) {
    super(`sign-in at the OpenID provider: ${reason}`, options);
    this.name = "OidcRefusal";
    this.reason = reason;
  }
}

/** Describes an error and its causes on one line, for the log. */
export function describeCauses(error: unknown): string {
  const texts: string[] = [];
  for (let cause = error; cause instanceof Error && texts.length < 5; cause = cause.cause) texts.push(cause.message);
  return texts.join(": ").slice(0, 500);
}
