import { LOCALE } from "./locale.ts";

/** Returns the separators of a locale: of thousands and of the fraction. */
function separatorsOf(locale: string): { readonly group: string | undefined; readonly point: string } {
  const parts = new Intl.NumberFormat(locale).formatToParts(1_234_567.5);
  const find = (type: "group" | "decimal") => parts.find((part) => part.type === type)?.value;
  return { group: find("group"), point: find("decimal") ?? "." };
}

/**
 * Reads a number in the reader's locale, and returns it with `.` before the fraction and no other separators. A point
 * that cannot separate thousands is read as a decimal point in every locale. Undefined for anything else: in English,
 * `7,50` is not read as 750.
 */
export function readDecimal(text: string, locale = LOCALE): string | undefined {
  const { group, point } = separatorsOf(locale);
  const compact = text.replaceAll(/[\s_'’]/g, "");
  const toEnglish = (character: string): string =>
    character === point ? "." : character === group ? "," : character === "," || character === "." ? "?" : character;
  const english = compact.replaceAll(/./gu, toEnglish);
  if (/^(\d+|\d{1,3}(,\d{2,3})*,\d{3})(\.\d+)?$/.test(english)) return english.replaceAll(",", "");
  return /^\d+\.\d+$/.test(compact) ? compact : undefined;
}

/** Writes a number for a field, so that `readDecimal` reads it: `7.5`, in German `7,5`. */
export function writeDecimal(decimal: string, locale = LOCALE): string {
  return decimal.replace(".", separatorsOf(locale).point);
}
