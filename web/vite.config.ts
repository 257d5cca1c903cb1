import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** What tables of pages consist of, and what other pages have, too. None needs a library that not every page has. */
const OF_TABLES =
  /web\/(components\/(table|row-actions|choose|sorted-head|sorting|more|spent|use-find|use-settled|icon-button|media)|format\/(limits|search))\.tsx?$|icons\/(arrow-down|arrow-up|ellipsis|pencil|trash|users)\./;
const OF_PAGES =
  /(web\/components\/(badge|field|relative-time|text-link)|web\/format\/(money|time|locale|number|decimal)|core\/budget-amounts)\.tsx?$|icons\/chevron-down\.|wkt\/timestamp\./;
/** The list of keys, and what the page of a key has of it. */
const OF_KEYS = /web\/keys\/(keys|key-actions|key-row|capabilities)\.tsx?$/;
const OF_KEY_MESSAGES = /gen\/parley\/(console\/v1\/key|v1\/label)_pb\.js$|web\/api\/(keys|owners)\.ts$/;

export default defineConfig({
  root: import.meta.dirname,
  publicDir: false,
  plugins: [react(), tailwindcss()],
  build: {
    // Browsers since the middle of 2024.
    target: ["chrome123", "firefox125", "safari17.5"],
    // The content security policy forbids inline styles and scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // Code that is needed together is one chunk: compressed together it is smaller than in parts.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: "app", tags: ["$initial"] },
            { name: "table", test: OF_TABLES },
            { name: "page", test: OF_PAGES },
            { name: "keys", test: OF_KEYS },
            { name: "key-messages", test: OF_KEY_MESSAGES },
          ],
        },
      },
    },
  },
});
