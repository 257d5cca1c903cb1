import { AppStore, type IMenuItem, OperationModel } from "redoc";
import type { ApiDocument } from "./document.ts";
import { readTheme } from "./theme.ts";

/** Creates Redoc's state for a document, in the current colours of the page. */
export function createStore(document: ApiDocument): AppStore {
  // Redoc writes into the document.
  const spec = structuredClone<unknown>(document) as ConstructorParameters<typeof AppStore>[0];
  const options = {
    theme: readTheme(),
    nativeScrollbars: true,
    // Messages of the contract are recursive. Without this limit their examples would be most of the page.
    generatedSamplesMaxDepth: 4,
    // The page's own header has a button instead.
    hideFab: true,
    scrollYOffset: () => globalThis.document.querySelector("header")?.offsetHeight ?? 0,
  };
  const store = new AppStore(spec, "/openapi.json", options, false);
  indexWords(store, document);
  return store;
}

/** Indexes every word of an operation or a schema, field names included. Redoc's own index holds titles and descriptions. */
function indexWords({ menu, search }: AppStore, document: ApiDocument): void {
  for (const item of menu.flatItems) {
    if (item.type !== "group") search?.add(item.name, wordsOf(item, document), item.id);
  }
  void search?.searchWorker.done();
}

function wordsOf(item: IMenuItem, { paths, components }: ApiDocument): string {
  const about = item instanceof OperationModel ? paths[item.path]?.[item.httpVerb] : components.schemas[item.name];
  return `${item.description ?? ""} ${JSON.stringify(about ?? "")}`.replaceAll(/[^\p{L}\p{N}_./-]+/gu, " ");
}
