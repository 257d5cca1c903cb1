import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Starts the installed Chromium. Throws if there is none. */
export async function startChromium(): Promise<Browser> {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const executablePath = folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync);
  if (executablePath === undefined) {
    throw new Error(`there is no ${NAMES.join(", ")} in PATH (Debian: apt-get install chromium)`);
  }
  return chromium.launch({
    executablePath,
    // Chromium's sandbox does not support root, as in containers, and shared memory is limited there.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"],
  });
}
