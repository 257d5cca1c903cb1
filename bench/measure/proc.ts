import { readdirSync, readFileSync } from "node:fs";

/** A file below `/proc`; undefined when its process has ended. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

/** A folder below `/proc`, empty when its process has ended. */
export function listIfThere(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
