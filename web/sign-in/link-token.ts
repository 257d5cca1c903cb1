/** Tokens in links to the sign-up and sign-in pages. They are in the URL fragment, which browsers do not send to servers. */
type LinkToken = "invitation" | "setup" | "link" | "reset";

/** Returns the token in the URL; empty without one. */
export function readLinkToken(name: LinkToken): string {
  return new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
}

/** Removes used tokens from the URL. */
export function forgetLinkTokens(): void {
  if ((["invitation", "setup", "link", "reset"] as const).some((name) => readLinkToken(name) !== ""))
    history.replaceState(history.state, "", location.pathname);
}
