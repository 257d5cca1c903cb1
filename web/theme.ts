/** How the pages look: as the system says, or as somebody chose in this browser. */
export const THEMES = ["system", "light", "dark"] as const;

export type Theme = (typeof THEMES)[number];

const STORED_AS = "parley-theme";

/** The theme that was chosen here; `system` where none was, and where the browser keeps nothing for us. */
export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED_AS);
    return THEMES.find((theme) => theme === stored) ?? "system";
  } catch {
    return "system";
  }
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the pages in the chosen theme, and follows the system where none was chosen. */
export function followTheme(): void {
  showTheme(readTheme());
  systemIsDark.addEventListener("change", () => showTheme(readTheme()));
}

/** Shows the pages in a theme from now on, in this browser. */
export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(STORED_AS, theme);
  } catch {
    // It holds until the page is left, then.
  }
  showTheme(theme);
}

/** The theme that is shown. */
export function shownTheme(): string | undefined {
  return document.documentElement.dataset["theme"];
}

/** Calls when the pages have changed to another theme, until the returned function is called. */
export function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => observer.disconnect();
}

function showTheme(theme: Theme): void {
  const isDark = theme === "system" ? systemIsDark.matches : theme === "dark";
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}
