import {
  Bell,
  BookOpen,
  ChartColumn,
  CircleUserRound,
  House,
  KeyRound,
  Layers,
  ListTree,
  type LucideIcon,
  MessageSquareText,
  Settings,
} from "lucide-react";
import type { Account } from "../../gen/parley/console/v1/account_pb.js";
import { mayWrite } from "../api/session.ts";
import { PATHS } from "../paths.ts";

/** A page of the navigation. */
export interface Place {
  readonly path: string;
  readonly name: string;
  readonly Icon: LucideIcon;
  /** Letter that opens the page when typed after `g`. */
  readonly letter: string;
}

/** Path prefix of the pages for administrators. */
const ADMINISTRATION = "/admin/";

/** Pages of the navigation, in its order. */
export const PLACES: readonly Place[] = [
  { path: PATHS.home, name: "Overview", Icon: House, letter: "o" },
  { path: PATHS.keys, name: "Keys", Icon: KeyRound, letter: "k" },
  { path: PATHS.usage, name: "Usage", Icon: ChartColumn, letter: "u" },
  { path: PATHS.requests, name: "Requests", Icon: ListTree, letter: "r" },
  { path: PATHS.playground, name: "Playground", Icon: MessageSquareText, letter: "p" },
  { path: PATHS.models, name: "Models", Icon: Layers, letter: "m" },
  { path: PATHS.alerts, name: "Alerts", Icon: Bell, letter: "l" },
  { path: PATHS.adminAccounts, name: "Administration", Icon: Settings, letter: "a" },
  { path: PATHS.account, name: "Account", Icon: CircleUserRound, letter: "c" },
];

/** The API reference, which is a document of its own. */
export const REFERENCE: Place = { path: PATHS.docs, name: "API reference", Icon: BookOpen, letter: "d" };

/** Pages of administration, each with the permission that it needs. */
export const ADMIN_PLACES = [
  [PATHS.adminAccounts, "Accounts", "accounts.read"],
  [PATHS.adminRoles, "Roles", "accounts.read"],
  [PATHS.adminTeams, "Teams", "members.read"],
  [PATHS.adminInvitations, "Invitations", "accounts.read"],
  [PATHS.adminKeys, "Administration keys", "admin_keys.read"],
  [PATHS.adminConfiguration, "Providers & models", "configuration.read"],
  [PATHS.adminProviders, "Provider health", "configuration.read"],
  [PATHS.adminAudit, "Audit log", "audit.read"],
  [PATHS.adminSettings, "Settings", "configuration.read"],
] as const;

/** Returns the pages that an account with these permissions can open. */
export function placesOf(account: Account, permissions: readonly string[]): readonly Place[] {
  return PLACES.flatMap((place) => {
    if (place.path === PATHS.playground && !mayWrite(account)) return [];
    if (!place.path.startsWith(ADMINISTRATION)) return [place];
    const first = ADMIN_PLACES.find(([, , needed]) => permissions.includes(needed));
    return first === undefined ? [] : [{ ...place, path: first[0] }];
  });
}

/** Whether the current path is below a page of the navigation, but not that page. */
export function isAround(path: string, here: string): boolean {
  return path !== PATHS.home && here.startsWith(path.startsWith(ADMINISTRATION) ? ADMINISTRATION : `${path}/`);
}
