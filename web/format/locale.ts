/** Locale of numbers, money and dates: that of the reader's browser. */
export const LOCALE = firstUsable(navigator.languages) ?? "en";

/**
 * Locale of phrases within a sentence of the page, which is English: "3 minutes ago". The reader's own English, if it is
 * among the languages of the browser.
 */
export const ENGLISH = firstUsable(navigator.languages.filter((tag) => /^en\b/i.test(tag))) ?? "en";

/** Returns the first valid tag. Browsers on Linux have passed on locales of the system such as `en-US@posix`. */
function firstUsable(tags: readonly string[]): string | undefined {
  return tags.find((tag) => {
    try {
      return Intl.getCanonicalLocales(tag).length > 0;
    } catch {
      return false;
    }
  });
}
