import type { Plugin } from "vite";

/** Replacements in Redoc's code for which it has no settings. */
const CHANGES: readonly (readonly [text: string, by: string])[] = [
  // The logo is loaded from the maker's host; the page loads nothing from other hosts.
  ["https://cdn.redoc.ly/redoc/logo-mini.svg", "data:,"],
  // Fixed colours of patterns, media types and the buttons of `oneOf`, unreadable in the dark theme.
  ["#0e7c86", "var(--color-accent)"],
  ["  color: black;", "  color: inherit;"],
  ["`\\n      color: white;", "`\\n      color: var(--color-on-accent);"],
  [" background-color: white;", " background-color: var(--color-surface);"],
  // A scrollable code block must be reachable by keyboard.
  ['.attrs({as:"pre"})', '.attrs({as:"pre",tabIndex:0})'],
  // Headings follow those of level two.
  ["ee.h5`", "ee.h3`"],
];

/** Applies the replacements during bundling. Fails unless each text occurs exactly once, as after an update of Redoc. */
export const redocChanges: Plugin = {
  name: "redoc-changes",
  transform: {
    filter: { id: /redoc\.browser\.lib\.js$/ },
    handler(code) {
      return CHANGES.reduce((changed, [text, by]) => {
        const parts = changed.split(text);
        if (parts.length !== 2) this.error(`Redoc has ${text} in ${parts.length - 1} places: look at redoc-changes.ts`);
        return parts.join(by);
      }, code);
    },
  },
};
