import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** The features that Playwright turns off: its list would be lost to another one. */
const OFF_BY_PLAYWRIGHT = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
];

/** The list below the address bar: two pages that Chromium loads for each window, which take it more time than the window. */
const ADDRESS_BAR = ["WebUIOmniboxPopup", "WebUIOmniboxAimPopup"];

let shared: Promise<Browser> | undefined;

/**
 * The Chromium of this process, started on first use: contexts are separate enough, and a start for each file of tests takes a
 * second of a core. It ends with the process, or by `stopChromium`. Throws if none is installed.
 */
export async function sharedChromium(): Promise<Browser> {
  shared ??= startChromium();
  return shared;
}

/** Ends the Chromium of this process, which otherwise keeps a program from ending. */
export async function stopChromium(): Promise<void> {
  await (await shared)?.close();
  shared = undefined;
}

async function startChromium(): Promise<Browser> {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const executablePath = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync);
  if (executablePath === undefined) {
    throw new Error(`there is no ${NAMES.join(", ")} in PATH (Debian: apt-get install chromium)`);
  }
  return chromium.launch({
    executablePath,
    // Chromium's sandbox does not support root, as in containers, and shared memory is limited there.
    args: [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--disable-background-networking",
      `--disable-features=${[...OFF_BY_PLAYWRIGHT, ...ADDRESS_BAR].join(",")}`,
    ],
  });
}
