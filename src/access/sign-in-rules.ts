import { Failure } from "../core/failure.ts";

/** How people sign in, by the configuration. */
export interface SignInRules {
  /** Longest life of a session, however much it is used. */
  readonly sessionMs: number;
  /** A session ends after this time without use. */
  readonly idleMs: number;
  /** Whether passwords, and passkeys, are accepted. */
  readonly password: boolean;
  /** Whether everybody who signs in with a password needs a second factor. */
  readonly secondFactor: "optional" | "required";
  /** The OpenID provider; undefined where none is configured. */
  readonly provider: SignInProvider | undefined;
}

interface SignInProvider {
  /** As on the button of the sign-in page. */
  readonly name: string;
  /** Lower-case domains of addresses that have to sign in there, and get accounts there. */
  readonly domains: ReadonlySet<string>;
}

/** The domain of a normalised e-mail address. */
function domainOf(email: string): string {
  return email.slice(email.lastIndexOf("@") + 1);
}

/** Whether the provider alone signs this address in. */
export function isCaptured({ provider }: SignInRules, email: string): boolean {
  return provider?.domains.has(domainOf(email)) === true;
}

/** Whether this address may sign in with a password or a passkey. */
export function signsInHere(rules: SignInRules, email: string): boolean {
  return rules.password && !isCaptured(rules, email);
}

/** Throws `permission_denied` for an address that may not sign in with a password or a passkey. The same with and without an account. */
export function requirePasswordSignIn(rules: SignInRules, email: string): void {
  if (signsInHere(rules, email)) return;
  const what = rules.password
    ? `Addresses of ${domainOf(email)} do not sign in with a password here`
    : "Passwords are off";
  throw new Failure("permission_denied", `${what}. Sign in with ${rules.provider?.name ?? "the provider"}.`);
}
