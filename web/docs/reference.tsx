import { observe } from "mobx";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { type AppStore, Redoc } from "redoc";
import { Button } from "../components/button.tsx";
import { Mark } from "../components/mark.tsx";
import { PATHS } from "../paths.ts";
import { ThemeSwitch } from "../layout/theme-switch.tsx";
import { onThemeChange, shownTheme } from "../theme.ts";
import type { ApiDocument } from "./document.ts";
import { createStore } from "./store.ts";

/** The API reference: Redoc over the OpenAPI document, in the dashboard's colours. */
export function Reference({ document }: { readonly document: ApiDocument }) {
  const theme = useSyncExternalStore(onThemeChange, shownTheme);
  return (
    <>
      <header className="sticky top-0 z-30 flex h-17 items-center gap-x-6 border-b border-line bg-surface px-5 print:hidden">
        <Mark />
        <a href={PATHS.home} className="text-sm font-medium text-accent underline underline-offset-2">
          Dashboard
        </a>
        <div className="ml-auto hidden sm:block">
          <ThemeSwitch />
        </div>
      </header>
      <main>
        <Content key={theme} document={document} />
      </main>
    </>
  );
}

/** Redoc in the current colours. A change of theme mounts it again. */
function Content({ document }: { readonly document: ApiDocument }) {
  const store = useMemo(() => createStore(document), [document]);
  useEffect(() => {
    store.onDidMount();
    return () => store.dispose();
  }, [store]);
  return (
    <>
      <ContentsButton menu={store.menu} />
      <Redoc store={store} />
    </>
  );
}

/** Opens and closes the contents on screens that are too narrow to show them beside the text. */
function ContentsButton({ menu }: Pick<AppStore, "menu">) {
  const isOpen = useSyncExternalStore(
    (changed) => observe(menu, "sideBarOpened", changed),
    () => menu.sideBarOpened,
  );
  return (
    <Button
      look="quiet"
      className="redoc-small-only fixed top-3 right-3 z-40"
      aria-expanded={isOpen}
      onClick={() => menu.toggleSidebar()}
    >
      {isOpen ? "Close" : "Contents"}
    </Button>
  );
}
