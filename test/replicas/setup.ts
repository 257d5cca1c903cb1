import type { TestProject } from "vitest/node";
import { startPostgres } from "../support/postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Of the administrative database of the server that the tests share; see `createDatabase`. */
    readonly postgresUrl: string;
  }
}

/** Starts what the tests of this folder share, once for all of them; ends it when they have ended. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres();
  project.provide("postgresUrl", postgres.url);
  return () => postgres.stop();
}
