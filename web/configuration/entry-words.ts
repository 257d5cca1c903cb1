import {
  ConfigurationSection as Section,
  CredentialState,
  EntryOrigin,
  EntryState,
  type NamedEntry,
  type ProviderCredential,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { describeValue } from "../administration/setting-names.ts";
import { formatFromNow } from "../format/time.ts";

/** Kinds of entries: section, name of one, name of several. */
export const KINDS: readonly (readonly [section: Section, one: string, all: string])[] = [
  [Section.PROVIDERS, "Provider", "Providers"],
  [Section.MODELS, "Model", "Models"],
  [Section.ALIASES, "Alias", "Aliases"],
  [Section.TIMEOUTS, "Time limit", "Time limits"],
  [Section.LIMITS, "Default limit", "Default limits"],
  [Section.RETRIES, "Retry", "Retries"],
  [Section.BREAKER, "Circuit breaker", "Circuit breakers"],
];

/** Sections of general settings, by their names in the configuration file. */
const SETTINGS: Partial<Record<Section, string>> = {
  [Section.TIMEOUTS]: "timeouts",
  [Section.LIMITS]: "limits",
  [Section.RETRIES]: "retries",
  [Section.BREAKER]: "breaker",
};

/** The key of a general setting, such as `timeouts.idle_ms`; undefined for another entry. */
export function settingOf({ section, name }: Pick<NamedEntry, "section" | "name">): string | undefined {
  const prefix = SETTINGS[section];
  return prefix && `${prefix}.${name}`;
}

/** Returns the name of an entry's kind: `Provider`. */
export function kindOf(section: Section): string {
  return KINDS.find(([each]) => each === section)?.[1] ?? "Entry";
}

const ORIGINS: Readonly<Record<EntryOrigin, string>> = {
  [EntryOrigin.UNSPECIFIED]: "Unknown",
  [EntryOrigin.FILE]: "Configuration file",
  [EntryOrigin.STORED]: "Stored",
  [EntryOrigin.ENVIRONMENT]: "Environment",
  [EntryOrigin.BUILT_IN]: "Built in",
  [EntryOrigin.IMPORTED]: "Imported",
};

export const originOf = ({ origin }: Pick<NamedEntry, "origin">): string => ORIGINS[origin];

const STATES = {
  [EntryState.UNSPECIFIED]: ["Unknown", "plain"],
  [EntryState.IN_FORCE]: ["In force", "good"],
  [EntryState.OVERRIDDEN]: ["Overridden", "warn"],
  [EntryState.LEFT_OUT]: ["Left out", "danger"],
  [EntryState.WITHOUT_CREDENTIAL]: ["Without credential", "danger"],
} as const;

export const stateOf = ({ state }: Pick<NamedEntry, "state">) => STATES[state];

/** Whether an entry is in the stored configuration. */
export const isStored = ({ origin }: Pick<NamedEntry, "origin">): boolean => origin === EntryOrigin.STORED;

/** Whether an entry may be changed in the dashboard: a stored one, or a general setting, which is then stored. */
export const isEditable = (entry: Pick<NamedEntry, "section" | "name" | "origin">): boolean =>
  isStored(entry) || (entry.origin === EntryOrigin.BUILT_IN && settingOf(entry) !== undefined);

/** Whether an entry is not in force: it is overridden, left out, or lacks a credential. */
export const hasProblem = ({ state }: Pick<NamedEntry, "state">): boolean => state !== EntryState.IN_FORCE;

const READ_ONLY: Partial<Record<EntryOrigin, string>> = {
  [EntryOrigin.FILE]: "Set in the configuration file. Change it there.",
  [EntryOrigin.ENVIRONMENT]: "Set by an environment variable. Change it there.",
  [EntryOrigin.BUILT_IN]: "Part of Parley. A stored entry of the same name takes precedence.",
  [EntryOrigin.IMPORTED]: "From the provider's own list of models. A stored entry of the same name takes precedence.",
};

/** Says why an entry cannot be changed here. */
export const describeOrigin = ({ origin }: Pick<NamedEntry, "origin">): string => READ_ONLY[origin] ?? "";

/** Describes a provider's credential: `API key set 3 days ago`. */
export function describeCredential(credential: ProviderCredential | undefined): string {
  if (credential === undefined) return "No API key";
  const { state, address, setTime, keys } = credential;
  const what = keys > 1 ? `${keys} API keys` : "API key";
  if (state === CredentialState.MISSING) return "No API key";
  if (state === CredentialState.UNREADABLE) return `${what} encrypted with another key: set it again`;
  if (state === CredentialState.OTHER_ADDRESS) return `${what} given for ${address}: set it again`;
  return setTime === undefined ? `${what} set` : `${what} set ${formatFromNow(setTime)}`;
}

/** Returns the provider in a model's YAML. Empty if it names none, or writes it in a form that this pattern does not match. */
export function providerOf({ entry }: Pick<NamedEntry, "entry">): string {
  return /(?:^|[{,\s])provider: *["']?([^"'\s,}]+)/.exec(entry)?.[1] ?? "";
}

/** Summarizes an entry: a provider's number of models, a model's provider, an alias's model, or a setting's value. */
export function summarize(target: NamedEntry): string {
  const { section, entry, models } = target;
  if (section === Section.PROVIDERS) return models === 1 ? "1 model" : `${models} models`;
  if (section === Section.ALIASES) return `for ${entry}`;
  const setting = settingOf(target);
  if (setting !== undefined) {
    const value = entry
      .replaceAll(/(?:^|\s)#.*$/gm, "")
      .trim()
      .replaceAll(/^["']|["']$/g, "");
    return /^(?:\d+(?:\.\d+)?|unlimited)$/.test(value) ? describeValue(setting, value) : value;
  }
  if (entry === "import") return "all that providers list";
  const provider = providerOf(target);
  return provider === "" ? "" : `by ${provider}`;
}
