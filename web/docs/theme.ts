import type { ThemeInterface } from "redoc/typings/theme";

/** CSS rules for named parts of Redoc. */
const PARTS: Readonly<Record<string, string>> = {
  ConstraintItem: "color: var(--color-accent-strong);",
  PropertyDetailsCell: "border-color: var(--color-line);",
  RightPanelHeader: "margin: 1em 0 0.5em;",
  UnderlinedHeader: "color: var(--color-muted); border-color: var(--color-line);",
};

/** Redoc's declared type of this option accepts no function, hence `unknown`. */
const extensionsHook: unknown = (part: string) => PARTS[part] ?? "";

/** Returns Redoc's theme in the current colours of the page. Redoc computes with colours, so it cannot use CSS variables. */
export function readTheme(): ThemeInterface {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(`--color-${name}`).trim();
  const fontFamily = style.getPropertyValue("--font-sans");
  const response = (name: string, tabTextColor: string) => ({
    color: color(name),
    backgroundColor: color(`${name}-soft`),
    tabTextColor,
  });
  return {
    colors: {
      primary: { main: color("accent") },
      success: { main: color("good") },
      error: { main: color("danger") },
      text: { primary: color("ink"), secondary: color("muted") },
      border: { light: color("line"), dark: color("edge") },
      gray: { 50: color("sunken"), 100: color("sunken") },
      responses: {
        success: response("good", "#6fd694"),
        error: response("danger", "#ff9a8f"),
        redirect: response("warn", "#f0bd5c"),
        info: response("accent", "#4fc4b7"),
      },
    },
    schema: {
      linesColor: color("edge"),
      typeNameColor: color("muted"),
      typeTitleColor: color("muted"),
      requireLabelColor: color("danger"),
      nestedBackground: color("sunken"),
      arrow: { color: color("muted") },
    },
    typography: {
      fontSize: "15px",
      fontFamily,
      headings: { fontFamily, fontWeight: "600" },
      code: {
        fontFamily: style.getPropertyValue("--font-mono"),
        color: color("ink"),
        backgroundColor: color("sunken"),
        wrap: true,
      },
      links: { color: color("accent"), visited: color("accent"), hover: color("accent-strong") },
    },
    sidebar: {
      backgroundColor: color("surface"),
      textColor: color("ink"),
      activeTextColor: color("accent-strong"),
      groupItems: { activeBackgroundColor: color("accent-soft") },
      level1Items: { activeBackgroundColor: color("accent-soft") },
    },
    // Dark in both themes, because Redoc's syntax highlighting assumes a dark background. The same applies to the tab
    // texts above.
    rightPanel: { backgroundColor: "#1c2226" },
    codeBlock: { backgroundColor: "#0f1315" },
    extensionsHook,
  } as ThemeInterface;
}
