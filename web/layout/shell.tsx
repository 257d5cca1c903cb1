import { lazy, type ReactNode, Suspense, useCallback, useMemo, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { Search } from "lucide-react";
import { useAccount, usePermissions, useRoleName } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Kbd } from "../components/kbd.tsx";
import { Mark } from "../components/mark.tsx";
import { notices } from "../components/notify.ts";
import { PATHS } from "../paths.ts";
import { AlertBadge } from "./alert-badge.tsx";
import { isAround, type Place, placesOf, REFERENCE } from "./places.ts";
import { COMMAND_KEY, type Overlay, useShortcuts } from "./shortcuts.ts";
import { SignOutButton } from "./sign-out-button.tsx";
import { Outdated } from "./outdated.tsx";
import { PasswordOnDemand } from "./password-on-demand.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

const Palette = lazy(() => import("../palette/palette.tsx"));
const ShortcutHelp = lazy(() => import("../palette/shortcut-help.tsx"));
const Toasts = lazy(() => import("./toasts.tsx"));

/** Classes of an entry of the navigation. */
const ENTRY =
  "flex min-h-9 items-center gap-3 rounded-lg px-3 text-sm font-medium text-muted hover:bg-sunken hover:text-ink aria-[current]:bg-accent-soft aria-[current]:text-accent-strong";

/** Layout of all pages of a session. The navigation is beside the page on wide screens and above it on phones. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  const overlays = useOverlays();
  return (
    <div className="lg:grid lg:min-h-dvh lg:grid-cols-[14rem_1fr]">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-3 focus:left-3 focus:z-10 focus:rounded-lg focus:bg-accent focus:px-4 focus:py-2 focus:text-on-accent"
      >
        Skip to content
      </a>
      <header className="border-b border-line bg-surface lg:border-r lg:border-b-0">
        <div className="flex flex-col px-4 py-3 lg:sticky lg:top-0 lg:h-dvh lg:overflow-y-auto lg:px-4 lg:py-5">
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
          <div id="menu" className={`${isOpen ? "flex" : "hidden"} mt-3 flex-1 flex-col gap-4 lg:mt-5 lg:flex`}>
            <SearchButton onClick={() => overlays.open("palette")} />
            <Places onGo={() => setOpen(false)} />
            <div className="mt-auto space-y-3">
              <a href={REFERENCE.path} className={ENTRY}>
                <REFERENCE.Icon aria-hidden className="size-4.5" />
                {REFERENCE.name}
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
      <ToastsOnDemand />
      {overlays.shown}
    </div>
  );
}

function SearchButton({ onClick }: { readonly onClick: () => void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      aria-keyshortcuts="Control+K Meta+K"
      className="flex min-h-9 items-center gap-3 rounded-lg border border-line bg-canvas px-3 text-sm text-muted hover:border-edge hover:text-ink"
    >
      <Search aria-hidden className="size-4" />
      Search
      <span aria-hidden className="ml-auto flex gap-1 max-lg:hidden">
        <Kbd>{COMMAND_KEY}</Kbd>
        <Kbd>K</Kbd>
      </span>
    </button>
  );
}

/** The palette and the list of shortcuts, loaded when first opened, with the keys that open them. */
function useOverlays() {
  const account = useAccount();
  const [overlay, setOverlay] = useState<Overlay>();
  const [loaded, setLoaded] = useState<ReadonlySet<Overlay>>(new Set());
  const [, navigate] = useLocation();
  const open = useCallback((next: Overlay): void => {
    setLoaded((before) => new Set([...before, next]));
    setOverlay(next);
  }, []);
  const go = useCallback(
    (place: Place): void => (place === REFERENCE ? location.assign(place.path) : navigate(place.path)),
    [navigate],
  );
  const permissions = usePermissions();
  const places = useMemo(() => [...placesOf(account, permissions), REFERENCE], [account, permissions]);
  useShortcuts({ places, go, open });
  const close = (): void => setOverlay(undefined);
  const shown = (
    <Suspense>
      {loaded.has("palette") && (
        <Palette open={overlay === "palette"} onClose={close} onShortcuts={() => open("shortcuts")} />
      )}
      {loaded.has("shortcuts") && <ShortcutHelp open={overlay === "shortcuts"} onClose={close} />}
    </Suspense>
  );
  return { open, shown } as const;
}

function Places({ onGo }: { readonly onGo: () => void }) {
  const [here] = useLocation();
  const account = useAccount();
  return (
    <nav aria-label="Pages">
      <ul className="space-y-0.5">
        {placesOf(account, usePermissions()).map(({ path, name, Icon }) => (
          <li key={path}>
            <Link
              href={path}
              onClick={onGo}
              aria-current={here === path ? "page" : isAround(path, here) ? true : undefined}
              className={ENTRY}
            >
              <Icon aria-hidden className="size-4.5" />
              {name}
              {path === PATHS.alerts && <AlertBadge />}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Person() {
  const account = useAccount();
  return (
    <div className="space-y-3 border-t border-line pt-3">
      <ThemeSwitch />
      <div className="px-1 text-sm">
        <p className="truncate font-medium" title={account.name}>
          <bdi>{account.name}</bdi>
        </p>
        <p className="truncate text-muted" title={account.email}>
          {account.email}
        </p>
        <p className="text-muted">{useRoleName()}</p>
      </div>
      <SignOutButton size="small" className="w-full">
        Sign out
      </SignOutButton>
    </div>
  );
}

/** Loads the toasts for the first notice. */
function ToastsOnDemand() {
  const isWaiting = useSyncExternalStore(notices.subscribe, notices.isWaiting);
  const [isLoaded, setLoaded] = useState(false);
  if (isWaiting && !isLoaded) setLoaded(true);
  if (!isLoaded) return null;
  return (
    <Suspense>
      <Toasts />
    </Suspense>
  );
}
