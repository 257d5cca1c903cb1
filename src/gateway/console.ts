import { fileURLToPath } from "node:url";
import { Modality } from "../../gen/parley/v1/completion_pb.js";
import type { AccessContext } from "../access/context.ts";
import type { Config } from "../config/config.ts";
import { readVersion } from "../config/version.ts";
import { readBuiltFiles } from "../console/built-files.ts";
import { type Console, createConsole } from "../console/console.ts";
import type { RequestFeed } from "../console/request-feed.ts";
import { makes } from "../core/model.ts";
import type { Router } from "../core/router.ts";
import type { EdgeServices, Refusal } from "../edge/services.ts";
import type { Store } from "../store/store.ts";

interface ConsoleParts extends Pick<EdgeServices, "completions" | "calls"> {
  readonly access: AccessContext;
  readonly store: Store;
  readonly router: Router;
  readonly feed: RequestFeed;
  readonly observer: { refused(refusal: Refusal): void };
}

/** Where `npm start` builds the pages. */
const PAGES_FOLDER = fileURLToPath(new URL("../../dist/console/", import.meta.url));

/** The dashboard on the parts of this gateway. */
export async function consoleOf(
  { http }: Config,
  { access, store, router, feed, observer, completions, calls }: ConsoleParts,
): Promise<{ readonly console: Console; readonly hasPages: boolean }> {
  const files = await readBuiltFiles(PAGES_FOLDER);
  const console = createConsole(
    {
      access,
      keys: store.keys,
      ledger: store.ledger,
      usage: store.usage,
      feed,
      models: () => router.list().map((model) => ({ id: model.id, images: makes(model, Modality.IMAGE) })),
      completions,
      calls,
      version: readVersion(),
      refused: (refusal) => observer.refused(refusal),
    },
    { ...http, files },
  );
  return { console, hasPages: files !== undefined };
}
