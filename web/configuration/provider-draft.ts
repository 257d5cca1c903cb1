import { ConfigurationSection as Section, type OfferedModel } from "../../gen/parley/console/v1/configuration_pb.js";
import type { Problem } from "./problems.ts";

/** Value of the field Service for one without a preset. */
export const OTHER = "";

/** A provider as entered in the form. */
export interface ProviderDraft {
  readonly name: string;
  /** Name of the preset, or OTHER. */
  readonly preset: string;
  /** Wire format, without a preset. */
  readonly dialect: string;
  /** Empty: that of the preset. */
  readonly baseUrl: string;
  /** Whether the address is in a private network. */
  readonly isPrivate: boolean;
  /** More settings, in YAML. */
  readonly more: string;
}

/** Prices in US dollars per million tokens, as typed. Empty: the list price, where Parley knows one. */
export interface Prices {
  readonly input: string;
  readonly output: string;
}

/** A model to be added. */
export interface ChosenModel extends Prices {
  /** The provider's own name of it. */
  readonly name: string;
  readonly offered: OfferedModel | undefined;
}

export interface Entry {
  readonly text: string;
  /** The field of the form that each line is from. */
  readonly lines: readonly string[];
}

/** Writes the entry of a provider. The settings in YAML come first, so that their lines are those of the field. */
export function providerEntry({ preset, dialect, baseUrl, isPrivate, more }: ProviderDraft): Entry {
  const own = more.trim() === "" ? [] : more.trimEnd().split("\n");
  const rest: readonly (readonly [field: string, line: string])[] = [
    preset === OTHER ? ["dialect", `dialect: ${dialect}`] : ["preset", `preset: ${preset}`],
    ...(baseUrl.trim() === "" ? [] : [["base_url", `base_url: ${JSON.stringify(baseUrl.trim())}`] as const]),
    ...(isPrivate ? [["allow_private", "allow_private: true"] as const] : []),
  ];
  return {
    text: [...own, ...rest.map(([, line]) => line)].join("\n"),
    lines: [...own.map(() => "more"), ...rest.map(([field]) => field)],
  };
}

/** The field of the form that a problem of the provider's change belongs to; empty for the whole form. */
export function fieldOfProblem({ part, line }: Problem, { lines }: Entry): string {
  if (part === "name" || part === "api_keys") return part;
  const field = lines[line - 1] ?? "";
  // A problem at the first line may be one of the whole entry, such as a missing setting.
  return ["more", "base_url"].includes(field) ? field : "";
}

/** Changes that add the provider and its models: all that it lists, or the chosen ones. */
export function toChanges(draft: ProviderDraft, apiKey: string, models: "all" | readonly ChosenModel[]) {
  const provider = {
    section: Section.PROVIDERS,
    name: draft.name,
    entry: providerEntry(draft).text,
    apiKeys: apiKey === "" ? [] : [apiKey],
  };
  const added =
    models === "all"
      ? [{ section: Section.MODELS, name: `${draft.name}/*`, entry: "import" }]
      : models.map((model) => ({
          section: Section.MODELS,
          name: `${draft.name}/${model.name}`,
          entry: modelEntry(draft.name, model),
        }));
  return [provider, ...added];
}

function modelEntry(provider: string, { name, input, output, offered }: ChosenModel): string {
  const prices = [
    ...(input.trim() === "" ? [] : [`input: ${input.trim()}`]),
    ...(output.trim() === "" ? [] : [`output: ${output.trim()}`]),
  ];
  return [
    `provider: ${provider}`,
    `upstream_model: ${JSON.stringify(name)}`,
    ...(offered !== undefined && offered.contextWindow > 0 ? [`context_window: ${offered.contextWindow}`] : []),
    ...(offered !== undefined && offered.maxOutputTokens > 0 ? [`max_output_tokens: ${offered.maxOutputTokens}`] : []),
    ...(prices.length === 0 ? [] : [`price: { ${prices.join(", ")} }`]),
  ].join("\n");
}
