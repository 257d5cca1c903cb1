import type { Report } from "./config-error.ts";
import type { ImportConfig, ProviderConfig } from "./config.ts";
import { isRecord } from "./document.ts";

/** A model in a provider's own list; has the shape of core's type of the same name. */
export interface OfferedModel {
  readonly name: string;
  readonly contextWindow: number | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly outputModalities?: readonly ("text" | "image" | "audio")[] | undefined;
}

/** Lists of models by the names of providers. */
export type ModelLists = ReadonlyMap<string, readonly OfferedModel[]>;

export const NO_LISTS: ModelLists = new Map();

/** Entry of `models` that imports from all providers. */
export const IMPORTS_ALL = "*";
/** One provider, whose name stands before those of its models. */
const OF_PROVIDER = /^(.+)\/\*$/;

/** The provider that an entry of `models` such as `NAME/*` imports from; undefined for another entry. */
export function importedProvider(pattern: string): string | undefined {
  return OF_PROVIDER.exec(pattern)?.[1];
}

/** Takes the entries of `models` that import out of a file's value: `"*": import` and `"NAME/*": import`. */
export function takeImports(value: unknown): { readonly value: unknown; readonly patterns: readonly string[] } {
  const models = isRecord(value) ? value["models"] : undefined;
  if (!isRecord(value) || !isRecord(models)) return { value, patterns: [] };
  const patterns = Object.keys(models).filter(
    (key) => models[key] === "import" && (key === IMPORTS_ALL || OF_PROVIDER.test(key)),
  );
  if (patterns.length === 0) return { value, patterns };
  const rest = Object.entries(models).filter(([key]) => !patterns.includes(key));
  return { value: { ...value, models: Object.fromEntries(rest) }, patterns };
}

/** The providers whose lists are imported, in the order of the file. One that is named itself is not among all. */
export function resolveImports(
  patterns: readonly string[],
  providers: readonly ProviderConfig[],
  report: Report,
): Pick<ImportConfig, "provider" | "prefix">[] {
  const named = patterns.flatMap((pattern) => importedProvider(pattern) ?? []);
  for (const name of named) {
    const provider = providers.find((one) => one.name === name);
    const path = ["models", `${name}/*`];
    if (provider === undefined) report(path, `there is no provider ${name}`);
    else if (!hasList(provider)) report(path, `${name} has no list of models that could be imported`);
  }
  const listing = providers.filter(hasList);
  if (patterns.includes(IMPORTS_ALL) && listing.length === 0)
    report(["models", IMPORTS_ALL], "no provider has a list of models that could be imported");
  return listing
    .filter(({ name }) => named.includes(name) || patterns.includes(IMPORTS_ALL))
    .map(({ name }) => ({ provider: name, prefix: named.includes(name) ? `${name}/` : "" }));
}

/** Clouds list what they sell, not what an account has. */
function hasList(provider: ProviderConfig): boolean {
  return !provider.simulated && provider.host === undefined && provider.dialect !== "bedrock-converse";
}
