import type { TestProject } from "vitest/node";
import { startPostgres } from "../support/postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the administrative database of the shared server; see `createDatabase`. */
    readonly postgresUrl: string;
  }
}

/** Starts the services that the tests of this folder share, and stops them at the end. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres();
  project.provide("postgresUrl", postgres.url);
  return () => postgres.stop();
}
