import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Measurements } from "../measurements.ts";
import { type Circumstances, PLOT_FILE, toMarkdown } from "./markdown.ts";
import { replaceOverview } from "./overview.ts";
import { plotCosts } from "./plot.ts";

/**
 * Writes a run as `docs/performance/README.md` with a plot, and its comparison of gateways into `README.md`, in the project's folder.
 * Returns the path of the document.
 */
export function writeDocument(project: string, measured: Measurements, circumstances: Circumstances): string {
  const folder = join(project, "docs", "performance");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "README.md");
  writeFileSync(file, toMarkdown(measured, circumstances));
  if (measured.loads.length > 0) writeFileSync(join(folder, PLOT_FILE), plotCosts(measured.loads));
  const readme = join(project, "README.md");
  writeFileSync(readme, replaceOverview(readFileSync(readme, "utf8"), measured, circumstances));
  return file;
}
