/** Tokens of links to the sign-up page. They stand behind the #, so that no server ever sees them in an address. */
type LinkToken = "invitation" | "setup";

/** The token of the link that was opened; empty without one. */
export function readLinkToken(name: LinkToken): string {
  return new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
}

/** Takes the tokens out of the address: they are used up. */
export function forgetLinkTokens(): void {
  if (readLinkToken("invitation") !== "" || readLinkToken("setup") !== "")
    history.replaceState(history.state, "", location.pathname);
}
