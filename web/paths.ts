/** Every address of the app. The server answers exactly these and `requestPath`'s with the page; a browser at
 * any other address gets the same page with 404. */
export const PATHS = {
  home: "/",
  signIn: "/sign-in",
  signUp: "/sign-up",
  keys: "/keys",
  usage: "/usage",
  requests: "/requests",
  playground: "/playground",
  models: "/models",
  /** Leads to the first of its pages. */
  admin: "/admin",
  adminAccounts: "/admin/accounts",
  adminInvitations: "/admin/invitations",
  adminProviders: "/admin/providers",
  adminSecurity: "/admin/security",
  adminSettings: "/admin/settings",
  account: "/account",
  docs: "/docs",
} as const;

export const PAGE_PATHS: readonly string[] = Object.values(PATHS);

/** The page of one request, by the completion's ID or the request's. */
export function requestPath(id: string): string {
  return `${PATHS.requests}/${encodeURIComponent(id)}`;
}

/** Whether there is a page at this address, without its query. */
export function isPagePath(path: string): boolean {
  return PAGE_PATHS.includes(path) || /^\/requests\/[^/]{1,400}$/.test(path);
}
