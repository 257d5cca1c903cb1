import { useSyncExternalStore } from "react";
import { Segments } from "../components/segments.tsx";
import { chooseTheme, onThemeChange, readTheme, type Theme, THEMES } from "../theme.ts";

const NAMES: Readonly<Record<Theme, string>> = { system: "Auto", light: "Light", dark: "Dark" };

/** Selects the theme: light, dark, or that of the system. */
export function ThemeSwitch() {
  const theme = useSyncExternalStore(onThemeChange, readTheme);
  return (
    <Segments
      legend="Appearance"
      choices={THEMES.map((each) => [each, NAMES[each]])}
      value={theme}
      onChange={chooseTheme}
    />
  );
}
