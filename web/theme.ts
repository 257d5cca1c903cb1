/** Themes: the system's, or one selected in this browser. */
export const THEMES = ["system", "light", "dark"] as const;

export type Theme = (typeof THEMES)[number];

const STORED_AS = "parley-theme";

/** Returns the stored theme; `system` without one, or if storage is not available. */
export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED_AS);
    return THEMES.find((theme) => theme === stored) ?? "system";
  } catch {
    return "system";
  }
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Applies the stored theme, and follows changes of the system theme. */
export function followTheme(): void {
  applyTheme(readTheme());
  systemIsDark.addEventListener("change", () => applyTheme(readTheme()));
}

/** Applies and stores a theme. */
export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(STORED_AS, theme);
  } catch {
    // Storage is not available: the theme applies until the page is closed.
  }
  applyTheme(theme);
}

/** Returns the applied theme: `light` or `dark`. */
export function shownTheme(): string | undefined {
  return document.documentElement.dataset["theme"];
}

/** Calls `changed` when the applied theme changes. Returns a function that unsubscribes. */
export function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}

function applyTheme(theme: Theme): void {
  const isDark = theme === "system" ? systemIsDark.matches : theme === "dark";
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}
