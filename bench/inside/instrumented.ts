import { join } from "node:path";

/** Node options that load the instruments. The process needs an IPC channel to this one. */
export const INSTRUMENTED: readonly string[] = ["--import", join(import.meta.dirname, "instruments.ts")];
