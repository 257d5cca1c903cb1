import type { Report } from "./config-error.ts";
import type { ImportConfig, ModelConfig, ProviderConfig } from "./config.ts";
import { isRecord } from "./document.ts";
import { DEFAULTS, type ModelParts, resolveModel } from "./model-entries.ts";
import type { CompleteModelInput } from "./models.ts";
import { MODEL_ID } from "./scalars.ts";
import { MAX_TOKENS } from "./schema.ts";

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

interface ImportParts extends Pick<ModelParts, "input" | "report"> {
  readonly asked: readonly Pick<ImportConfig, "provider" | "prefix">[];
  readonly lists: ModelLists;
  /** Those of the file, and the built-in ones. */
  readonly models: readonly ModelConfig[];
  readonly providers: readonly ProviderConfig[];
}

/**
 * The models of the lists that are known, of which each name is imported once: those of the file go before, then the first provider
 * that has it.
 */
export function importModels({ asked, lists, input, models, providers, report }: ImportParts): {
  readonly imports: readonly ImportConfig[];
  readonly imported: readonly ModelConfig[];
} {
  const configured = new Set([
    ...models.map(({ id }) => id),
    ...Object.keys(input.models),
    ...Object.keys(input.aliases),
  ]);
  const beginnings = Object.keys(input.aliases).flatMap((alias) => (alias.endsWith("*") ? [alias.slice(0, -1)] : []));
  const isConfigured = (id: string): boolean =>
    configured.has(id) || beginnings.some((beginning) => id.startsWith(beginning));
  const imported = new Map<string, ModelConfig>();
  const imports = asked.map(({ provider: name, prefix }) => {
    const provider = providers.find((one) => one.name === name)!;
    const shadowed: string[] = [];
    for (const offered of (lists.get(name) ?? []).slice(0, MAX_IMPORTED)) {
      const id = prefix + offered.name;
      if (isConfigured(id) || !MODEL_ID.test(id)) continue;
      if (imported.has(id)) shadowed.push(offered.name);
      else imported.set(id, resolveOffered({ id, offered, provider, input, report }));
    }
    return { provider: name, prefix, shadowed: shadowed.slice(0, MAX_SHADOWED) };
  });
  return { imports, imported: [...imported.values()] };
}

/** Models of one list that are imported. */
const MAX_IMPORTED = 1_000;

/** Names that a warning has. */
const MAX_SHADOWED = 10;

/** A model with the facts of its provider's list before those of the list of known models. */
function resolveOffered({
  id,
  offered: { name, contextWindow, maxOutputTokens, outputModalities = ["text"] },
  ...parts
}: Omit<ModelParts, "model"> & { readonly offered: OfferedModel }): ModelConfig {
  const offered = { context_window: contextWindow, max_output_tokens: maxOutputTokens };
  const given = Object.entries(offered).filter(([, tokens]) => tokens !== undefined && tokens <= MAX_TOKENS);
  const modalities = { input: ["text"], output: outputModalities };
  const model = { ...DEFAULTS, modalities, description: id, provider: parts.provider.name, upstream_model: name };
  const resolved = resolveModel({
    id,
    model: { ...model, ...Object.fromEntries(given) } as CompleteModelInput,
    ...parts,
  });
  const { sources } = resolved;
  const ofProvider = <T>(source: T): T | "provider" => (source === "configured" ? "provider" : source);
  return {
    ...resolved,
    sources: {
      ...sources,
      contextWindow: ofProvider(sources.contextWindow),
      maxOutputTokens: ofProvider(sources.maxOutputTokens),
    },
  };
}
