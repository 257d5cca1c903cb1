import { lazy, type ReactNode, Suspense, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import {
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
import { passwordRequest } from "../api/password-request.ts";
import { isAdministrator, mayWrite, useAccount } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Mark } from "../components/mark.tsx";
import { roleName } from "../format/roles.ts";
import { PATHS } from "../paths.ts";
import { SignOutButton } from "./sign-out-button.tsx";
import { Outdated } from "./outdated.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

const PasswordDialog = lazy(() => import("./password-dialog.tsx"));

const PLACES: readonly (readonly [path: string, name: string, Icon: LucideIcon])[] = [
  [PATHS.home, "Overview", House],
  [PATHS.keys, "Keys", KeyRound],
  [PATHS.usage, "Usage", ChartColumn],
  [PATHS.requests, "Requests", ListTree],
  [PATHS.playground, "Playground", MessageSquareText],
  [PATHS.models, "Models", Layers],
  [PATHS.adminAccounts, "Administration", Settings],
  [PATHS.account, "Account", CircleUserRound],
];

/** Classes of an entry of the navigation. */
const ENTRY =
  "flex min-h-10 items-center gap-3 rounded-lg px-3 text-[0.9375rem] font-medium text-muted hover:bg-sunken hover:text-ink aria-[current]:bg-accent-soft aria-[current]:text-accent-strong";

/** Path prefix of the pages for administrators. */
const ADMINISTRATION = "/admin/";

/** Layout of all pages of a session. The navigation is beside the page on wide screens and above it on phones. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="lg:grid lg:min-h-dvh lg:grid-cols-[14rem_1fr]">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-3 focus:left-3 focus:z-10 focus:rounded-lg focus:bg-accent focus:px-4 focus:py-2 focus:text-on-accent"
      >
        Skip to content
      </a>
      <header className="border-b border-line bg-surface lg:border-r lg:border-b-0">
        <div className="flex flex-col px-4 py-3 lg:sticky lg:top-0 lg:h-dvh lg:px-5 lg:py-6">
          <div className="flex items-center justify-between">
            <Mark />
            <Button
              look="quiet"
              size="small"
              className="lg:hidden"
              aria-expanded={isOpen}
              aria-controls="menu"
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? "Close" : "Menu"}
            </Button>
          </div>
          <div id="menu" className={`${isOpen ? "flex" : "hidden"} mt-3 flex-1 flex-col gap-6 lg:mt-8 lg:flex`}>
            <Places onGo={() => setOpen(false)} />
            <div className="mt-auto space-y-4">
              <a href={PATHS.docs} className={ENTRY}>
                <BookOpen aria-hidden className="size-4.5" />
                API reference
              </a>
              <Person />
            </div>
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1} className="w-full max-w-[100rem] min-w-0 px-4 py-6 sm:px-8">
        <Outdated />
        {children}
      </main>
      <PasswordOnDemand />
    </div>
  );
}

function Places({ onGo }: { readonly onGo: () => void }) {
  const [here] = useLocation();
  const account = useAccount();
  const places = PLACES.filter(([path]) => {
    if (path.startsWith(ADMINISTRATION)) return isAdministrator(account);
    return path !== PATHS.playground || mayWrite(account);
  });
  return (
    <nav aria-label="Pages">
      <ul className="space-y-1">
        {places.map(([path, name, Icon]) => (
          <li key={path}>
            <Link
              href={path}
              onClick={onGo}
              aria-current={here === path ? "page" : isAround(path, here) ? true : undefined}
              className={ENTRY}
            >
              <Icon aria-hidden className="size-4.5" />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Whether the current path is below a navigation entry, but not its first page. */
function isAround(path: string, here: string): boolean {
  return path !== PATHS.home && here.startsWith(path.startsWith(ADMINISTRATION) ? ADMINISTRATION : `${path}/`);
}

function Person() {
  const account = useAccount();
  return (
    <div className="space-y-4 border-t border-line pt-4">
      <ThemeSwitch />
      <div className="px-1 text-sm">
        <p className="truncate font-medium" title={account.name}>
          <bdi>{account.name}</bdi>
        </p>
        <p className="truncate text-muted" title={account.email}>
          {account.email}
        </p>
        <p className="mt-0.5 text-muted">{roleName(account.role)}</p>
      </div>
      <SignOutButton size="small" className="w-full">
        Sign out
      </SignOutButton>
    </div>
  );
}

/** Loads the password dialog when a call first needs it. */
function PasswordOnDemand() {
  const isOpen = useSyncExternalStore(passwordRequest.subscribe, passwordRequest.isOpen);
  const [isLoaded, setLoaded] = useState(false);
  if (isOpen && !isLoaded) setLoaded(true);
  if (!isLoaded) return null;
  return (
    <Suspense>
      <PasswordDialog open={isOpen} />
    </Suspense>
  );
}
