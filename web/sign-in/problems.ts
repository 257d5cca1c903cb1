/** Advice for a sign-in that failed at the OpenID provider, by its reason in the URL. */
export const PROBLEMS: Readonly<Record<string, string>> = {
  unreachable: "{provider} does not answer. Try again in a minute; if that does not help, tell an administrator.",
  declined: "{provider} did not sign you in. Try again, or ask the administrators of {provider} for access.",
  expired: "This sign-in has expired, or was begun in another browser or tab. Sign in again.",
  misconfigured: "{provider} refuses Parley as its client. Tell an administrator: the log of Parley has the reason.",
  invalid: "The answer of {provider} is not valid. Sign in again; if that does not help, tell an administrator.",
  unverified: "{provider} has not verified your e-mail address. Verify it there, or ask an administrator.",
  no_account: "You have no account, and none is made for your e-mail address. Ask an administrator.",
  not_linked: "Your e-mail address has an account that is not linked to you. Ask an administrator to link it.",
  no_role: "None of your groups has access. Ask an administrator.",
  too_many_groups: "{provider} does not send your groups, because you have too many. Tell an administrator.",
  disabled: "This account is disabled. Ask an administrator.",
  other_person: "You have confirmed as somebody else than the account that is signed in. Confirm as yourself.",
  no_auth_time: "{provider} does not say when it last asked for your password. Tell an administrator.",
  not_asked: "{provider} did not ask for your password again. Sign out there, then try again.",
  rate_limited: "Too many attempts from your network. Try again in a minute.",
  unavailable: "Parley cannot sign you in right now. Try again shortly.",
};

/** The text for the reason in the URL; undefined without one. */
export function readProblem(search: string, provider: string): string | undefined {
  const reason = new URLSearchParams(search).get("problem");
  if (reason === null || !Object.hasOwn(PROBLEMS, reason)) return undefined;
  return PROBLEMS[reason]!.replaceAll("{provider}", provider);
}
