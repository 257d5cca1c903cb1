import { IMPORTS_ALL, importedProvider, type ModelLists } from "./imports.ts";
import { BUILT_IN_MODELS } from "./models.ts";

interface NameParts {
  /** The file's imports. */
  readonly patterns: readonly string[];
  /** Known lists of models, by the names of providers. */
  readonly lists: ModelLists;
  /** Whether the file, or the environment, has a provider. */
  readonly isOfFile: (provider: string) => boolean;
}

/** Why a stored model or alias may not have its name: it would take over a model of a provider of the file. */
export function nameProblem(
  [section, name]: readonly [string, string],
  { patterns, lists, isOfFile }: NameParts,
): string | undefined {
  if (section !== "models" && section !== "aliases") return undefined;
  const seller = Object.hasOwn(BUILT_IN_MODELS, name) ? BUILT_IN_MODELS[name]!.provider : undefined;
  if (seller !== undefined && isOfFile(seller))
    return `is a built-in model of ${seller}, which the configuration file or the environment has; change it in the file`;
  // `"*": import` of the file has no prefix, and one of a provider alone would change its names.
  const importsAll = patterns.includes(IMPORTS_ALL);
  const provider = importedProvider(name);
  if (section === "models" && importsAll && provider !== undefined && isOfFile(provider))
    return `would rename models of ${provider}, which the configuration file imports`;
  const beginning = section === "aliases" && name.endsWith("*") ? name.slice(0, -1) : undefined;
  const named = patterns.flatMap((pattern) => importedProvider(pattern) ?? []);
  const prefix = named
    .map((one) => `${one}/`)
    .find((one) =>
      beginning === undefined ? name.startsWith(one) : beginning.startsWith(one) || one.startsWith(beginning),
    );
  if (prefix !== undefined) return `begins as the models that the configuration file imports by ${prefix}*`;
  const covers = (model: string): boolean => (beginning === undefined ? model === name : model.startsWith(beginning));
  const lister = [...lists.keys()].find(
    (one) => isOfFile(one) && !named.includes(one) && lists.get(one)!.some((model) => covers(model.name)),
  );
  if (!importsAll || lister === undefined) return undefined;
  return `is a model of ${lister}, which the configuration file imports`;
}
