import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { openStore, type Store } from "../store/store.ts";
import type { CliContext, Invocation } from "./command.ts";
import { EXIT } from "./exit-code.ts";

/** Runs a command's action on the configured database, and closes it however that ends. Answers with the exit code. */
export async function withStore(
  { flags }: Invocation,
  { env }: CliContext,
  action: (store: Store, config: Config) => Promise<void>,
): Promise<number> {
  const config = loadConfig({ file: flags["config"], env });
  const store = await openStore(config);
  try {
    await action(store, config);
    return EXIT.ok;
  } finally {
    await store.close();
  }
}
