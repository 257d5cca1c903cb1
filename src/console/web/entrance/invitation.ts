/** The token of an invitation's link, which stands behind the # so that no server ever sees it in an address. */
export function readInvitation(): string {
  return new URLSearchParams(location.hash.slice(1)).get("invitation") ?? "";
}

/** Takes the token out of the address: it is used up. */
export function forgetInvitation(): void {
  if (readInvitation() !== "") history.replaceState(history.state, "", location.pathname);
}
