/** Every address of the app. The server answers exactly these with the page, and everything else as before. */
export const PATHS = {
  home: "/",
  signIn: "/sign-in",
  signUp: "/sign-up",
  keys: "/keys",
  usage: "/usage",
  playground: "/playground",
  models: "/models",
  adminAccounts: "/admin/accounts",
  adminInvitations: "/admin/invitations",
  adminProviders: "/admin/providers",
  adminSecurity: "/admin/security",
  adminSettings: "/admin/settings",
  account: "/account",
  docs: "/docs",
} as const;

export const PAGE_PATHS: readonly string[] = Object.values(PATHS);
