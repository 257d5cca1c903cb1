const MAX_LENGTH = 100;

/** The first that fits: most browsers also claim to be others. */
const BROWSERS = [
  ["Edge", /\bEdgA?\//],
  ["Opera", /\bOPR\//],
  ["Firefox", /\b(Firefox|FxiOS)\//],
  ["Chrome", /\b(Chrome|Chromium|HeadlessChrome|CriOS)\//],
  ["Safari", /\bVersion\/[\d.]+ .*\bSafari\//],
] as const;

const SYSTEMS = [
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["macOS", /\bMac OS X\b/],
  ["Linux", /\bLinux\b/],
] as const;

/**
 * What a `User-Agent` header says that people recognise their browser by, such as `Firefox on Linux`; what no browser sends, as it
 * is but without control characters. Undefined when it says nothing.
 */
export function describeBrowser(userAgent = ""): string | undefined {
  const [browser, system] = [BROWSERS, SYSTEMS].map(
    (known) => known.find(([, pattern]) => pattern.test(userAgent))?.[0],
  );
  if (browser !== undefined) return system === undefined ? browser : `${browser} on ${system}`;
  const text = userAgent
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, " ")
    .trim()
    .slice(0, MAX_LENGTH)
    .toWellFormed();
  return text === "" ? undefined : text;
}
