import { join } from "node:path";

/** What loads the instruments into a program of Node. Its process needs a channel to this one. */
export const INSTRUMENTED: readonly string[] = ["--import", join(import.meta.dirname, "instruments.ts")];
