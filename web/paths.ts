/**
 * All URL paths of the app. The server responds with the page for these paths and those of the functions below, and with 404
 * and the same page for any other path.
 */
export const PATHS = {
  home: "/",
  signIn: "/sign-in",
  signUp: "/sign-up",
  /** The end of a confirmation at the OpenID provider, in a tab of its own. */
  confirmed: "/confirmed",
  keys: "/keys",
  usage: "/usage",
  requests: "/requests",
  playground: "/playground",
  models: "/models",
  alerts: "/alerts",
  /** Redirects to the first administration page. */
  admin: "/admin",
  adminAccounts: "/admin/accounts",
  adminRoles: "/admin/roles",
  adminTeams: "/admin/teams",
  adminInvitations: "/admin/invitations",
  adminKeys: "/admin/keys",
  adminConfiguration: "/admin/configuration",
  adminVersions: "/admin/configuration/versions",
  adminProviders: "/admin/providers",
  adminAudit: "/admin/audit",
  adminReceivers: "/admin/audit/receivers",
  adminSettings: "/admin/settings",
  account: "/account",
  docs: "/docs",
} as const;

export const PAGE_PATHS: readonly string[] = Object.values(PATHS);

/** Returns the path of a request's page, by completion ID or request ID. */
export function requestPath(id: string): string {
  return `${PATHS.requests}/${encodeURIComponent(id)}`;
}

/** Returns the path of a key's page, by its ID. */
export function keyPath(id: string): string {
  return `${PATHS.keys}/${id}`;
}

/** Returns the path of a model's page, by its ID, which may have slashes. */
export function modelPath(id: string): string {
  return `${PATHS.models}/${id.split("/").map(encodeURIComponent).join("/")}`;
}

/** Returns the path of the page of a key's end users and sessions, by the key's ID. */
export function endUsersPath(keyId: string): string {
  return `${keyPath(keyId)}/end-users`;
}

/** Path of a page about one object. */
const OBJECT_PATH = /^\/(?:requests\/[^/]{1,400}|keys\/\w{1,80}(?:\/end-users)?|models\/[\w.:/@%-]{0,799}[\w.:@%-])$/;

/** Whether the path, without query, belongs to a page. */
export function isPagePath(path: string): boolean {
  return PAGE_PATHS.includes(path) || OBJECT_PATH.test(path);
}
