import { useId, useState } from "react";
import { chooseTheme, readTheme, type Theme, THEMES } from "../theme.ts";

const NAMES: Readonly<Record<Theme, string>> = { system: "Auto", light: "Light", dark: "Dark" };

/** Light, dark, or as the system says. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme);
  const name = useId();
  return (
    <fieldset className="flex rounded-lg border border-line bg-sunken p-0.5">
      <legend className="sr-only">Appearance</legend>
      {THEMES.map((each) => (
        <label
          key={each}
          className="flex min-h-8 flex-1 items-center justify-center rounded-md px-2.5 text-sm text-muted has-checked:bg-surface has-checked:font-medium has-checked:text-ink has-checked:shadow-xs has-focus-visible:outline-2 has-focus-visible:outline-accent"
        >
          <input
            type="radio"
            className="sr-only"
            name={name}
            checked={theme === each}
            onChange={() => {
              chooseTheme(each);
              setTheme(each);
            }}
          />
          {NAMES[each]}
        </label>
      ))}
    </fieldset>
  );
}
