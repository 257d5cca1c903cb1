import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Measurements } from "../measurements.ts";
import { type Circumstances, PLOT_FILE, toMarkdown } from "./markdown.ts";
import { plotCosts } from "./plot.ts";

/** Writes a run as a document and its plot into a folder. The document's path. */
export function writeDocument(folder: string, measured: Measurements, circumstances: Circumstances): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "README.md");
  writeFileSync(file, toMarkdown(measured, circumstances));
  if (measured.loads.length > 0) writeFileSync(join(folder, PLOT_FILE), plotCosts(measured.loads));
  return file;
}
