import { observe } from "mobx";
import { useEffect, useMemo, useSyncExternalStore } from "react";
import {
  ApiContentWrap,
  ApiInfo,
  type AppStore,
  BackgroundStub,
  type IMenuItem,
  OptionsProvider,
  RedocWrap,
  SearchBox,
  SideMenu,
  StickyResponsiveSidebar,
  StoreProvider,
  ThemeProvider,
} from "redoc";
import { Button } from "../components/button.tsx";
import { Mark } from "../components/mark.tsx";
import { PATHS } from "../paths.ts";
import { ThemeSwitch } from "../layout/theme-switch.tsx";
import { onThemeChange, shownTheme } from "../theme.ts";
import type { ApiDocument } from "./document.ts";
import { LateSection } from "./late-section.tsx";
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

/** Redoc's parts in the current colours, as its component `Redoc` has them, with sections that are rendered late. A change of theme mounts them again. */
function Content({ document }: { readonly document: ApiDocument }) {
  const store = useMemo(() => createStore(document), [document]);
  const { menu, options, search, marker } = store;
  useEffect(() => {
    store.onDidMount();
    return () => store.dispose();
  }, [store]);
  return (
    <>
      <ContentsButton menu={menu} />
      <ThemeProvider theme={options.theme}>
        <StoreProvider value={store}>
          <OptionsProvider value={options}>
            <RedocWrap className="redoc-wrap">
              <StickyResponsiveSidebar menu={menu} className="menu-content">
                <SearchBox
                  search={search!}
                  marker={marker}
                  getItemById={menu.getItemById}
                  onActivate={(item) => menu.activateAndScroll(item)}
                />
                <SideMenu menu={menu} />
              </StickyResponsiveSidebar>
              <ApiContentWrap className="api-content">
                <ApiInfo store={store} />
                {sectionsOf(menu.items).map((item) => (
                  <LateSection key={item.id} item={item} />
                ))}
              </ApiContentWrap>
              <BackgroundStub />
            </RedocWrap>
          </OptionsProvider>
        </StoreProvider>
      </ThemeProvider>
    </>
  );
}

/** All sections in the order of the page. A group of the menu has none of its own. */
function sectionsOf(items: readonly IMenuItem[]): readonly IMenuItem[] {
  return items.flatMap((item) => [...(item.type === "group" ? [] : [item]), ...sectionsOf(item.items)]);
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
