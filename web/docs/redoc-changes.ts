import type { Plugin } from "vite";

/** Replacements in Redoc's code where it has no options. */
const CHANGES: readonly (readonly [text: string, by: string])[] = [
  // Redoc loads the logo from its vendor's host; the page must not load anything from other hosts.
  ["https://cdn.redoc.ly/redoc/logo-mini.svg", "data:,"],
  // Fixed colours of patterns, media types and the buttons of `oneOf` are unreadable in the dark theme.
  ["#0e7c86", "var(--color-accent)"],
  ["  color: black;", "  color: inherit;"],
  ["`\\n      color: white;", "`\\n      color: var(--color-on-accent);"],
  [" background-color: white;", " background-color: var(--color-surface);"],
  // A scrollable code block must be reachable by keyboard.
  ['.attrs({as:"pre"})', '.attrs({as:"pre",tabIndex:0})'],
  // Heading levels must not skip a level: h3 follows h2.
  ["ee.h5`", "ee.h3`"],
];

/**
 * Applies the replacements during bundling. Fails unless each text occurs exactly once, which detects changes by a
 * Redoc update.
 */
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
