import type { ConfigPath } from "../config/config-error.ts";
import type { ParsedYaml } from "../config/document.ts";
import { MAX_STORED_LENGTH, type StoredSection } from "../config/stored.ts";
import {
  type DocumentEntry,
  editDocument,
  readEntryYaml,
  readStored,
  type StoredDocument,
} from "../config/stored-document.ts";
import { overriddenEntries } from "../config/stored-entries.ts";
import { invalidField } from "../core/failure.ts";
import {
  type ChangeFacts,
  type ChangeResult,
  checkKeys,
  placeOf,
  putDocument,
  reading,
  readLatest,
  type StoredPorts,
} from "./stored-changes.ts";

/** A change of one entry and of its credential. */
export interface EntryChange {
  readonly section: StoredSection;
  readonly name: string;
  /** YAML; empty: it is removed; undefined: it stays. */
  readonly entry: string | undefined;
  /** API keys of a provider, in place of its earlier ones; empty: they stay. */
  readonly apiKeys: readonly string[];
  readonly removesCredential: boolean;
}

const MAX_CHANGES = 500;
const MAX_NAME_CHARS = 256;

/** Changes entries of the stored configuration, all or none. Throws as `putDocument`; no failure repeats a credential. */
export async function changeEntries(
  ports: StoredPorts,
  { changes, ...facts }: ChangeFacts & { readonly changes: readonly EntryChange[] },
): Promise<ChangeResult> {
  checkChanges(changes);
  const rows = await readLatest(ports, facts);
  const texts = readTexts(changes);
  const before = rows?.version.document ?? "";
  const edits = changes.flatMap(({ section, name, entry }, index) =>
    entry === undefined ? [] : [{ section, name, entry: texts.get(index) }],
  );
  const document = reading(
    () => "changes",
    () => readStored(editDocument(before, edits)),
  );
  const { entries } = document;
  checkOwners(changes, { stored: entries, overridden: overriddenEntries(ports.source(), entries) });
  const indexOf = ([section, name]: ConfigPath): number =>
    changes.findIndex((change) => change.section === section && change.name === name);
  return putDocument(ports, rows, {
    ...facts,
    document,
    given: new Map(changes.flatMap(({ name, apiKeys }) => (apiKeys.length > 0 ? [[name, apiKeys] as const] : []))),
    removed: changes.flatMap(({ name, removesCredential }) => (removesCredential ? [name] : [])),
    credentialFieldOf(provider) {
      const index = indexOf(["providers", provider]);
      return index < 0 || changes[index]!.removesCredential ? undefined : `changes[${index}].api_keys`;
    },
    fieldOf({ path, atKey }) {
      const index = indexOf(path);
      const text = texts.get(index);
      if (text === undefined) return index < 0 ? "changes" : `changes[${index}]`;
      const [, , ...inner] = path;
      if (inner[0] === "api_keys") return `changes[${index}].api_keys`;
      return `changes[${index}].entry${text.locate(inner, atKey ? "key" : "value")}`;
    },
  });
}

/** Replaces the whole document. Throws as `putDocument`. */
export function importDocument(
  ports: StoredPorts,
  { document, ...facts }: ChangeFacts & { readonly document: string },
): Promise<ChangeResult> {
  return putWhole(ports, document, facts);
}

/** Makes a version with the document of an earlier one. Throws as `putDocument`, and `invalid_request` for a version that is not kept. */
export async function rollBack(
  ports: StoredPorts,
  { to, comment, ...facts }: ChangeFacts & { readonly to: number },
): Promise<ChangeResult> {
  const found = await findVersion(ports, to);
  return putWhole(ports, found.document, {
    ...facts,
    comment: comment === "" ? `roll back to version ${to}` : comment,
  });
}

/** A version. Throws `invalid_request` for one that is not kept. */
export async function findVersion({ store }: Pick<StoredPorts, "store">, version: number) {
  const found =
    Number.isSafeInteger(version) && version > 0 && version < 2 ** 31 ? await store.find(version) : undefined;
  if (found === undefined) throw invalidField("version", `there is no version ${version}, or it is not kept any more`);
  return found;
}

async function putWhole(ports: StoredPorts, text: string, facts: ChangeFacts): Promise<ChangeResult> {
  const rows = await readLatest(ports, facts);
  const document = reading(
    (place) => `document${place}`,
    (): StoredDocument =>
      // An empty map counts as an empty document.
      readStored(/^\s*(\{\s*\})?\s*$/.test(text) ? "" : text),
  );
  return putDocument(ports, rows, {
    ...facts,
    document,
    given: new Map(),
    removed: [],
    credentialFieldOf: () => undefined,
    fieldOf: ({ line }) => `document${placeOf(line)}`,
  });
}

function checkChanges(changes: readonly EntryChange[]): void {
  if (changes.length === 0 || changes.length > MAX_CHANGES)
    throw invalidField("changes", `must be at least one and at most ${MAX_CHANGES}`);
  const seen = new Set<string>();
  changes.forEach(({ section, name, entry, apiKeys, removesCredential }, index) => {
    const field = `changes[${index}]`;
    if (name === "" || name.length > MAX_NAME_CHARS)
      throw invalidField(`${field}.name`, `must have 1 to ${MAX_NAME_CHARS} characters`);
    const key = `${section}.${name}`;
    if (seen.size === seen.add(key).size) throw invalidField(field, `${key} is changed twice`);
    const hasCredential = apiKeys.length > 0 || removesCredential;
    if (hasCredential && section !== "providers") throw invalidField(`${field}.api_keys`, "are for providers only");
    if (entry === undefined && !hasCredential) throw invalidField(field, "changes nothing: give entry or api_keys");
    if (removesCredential && apiKeys.length > 0)
      throw invalidField(`${field}.remove_credential`, "cannot be beside api_keys");
    checkKeys(apiKeys, `${field}.api_keys`);
  });
}

interface Owners {
  readonly stored: readonly DocumentEntry[];
  /** Entries that the file or the environment has too. */
  readonly overridden: readonly DocumentEntry[];
}

/** Throws `invalid_request` for a credential without a stored provider that is in force. */
function checkOwners(changes: readonly EntryChange[], { stored, overridden }: Owners): void {
  const namesOf = (entries: readonly DocumentEntry[]): ReadonlySet<string> =>
    new Set(entries.flatMap(({ section, name }) => (section === "providers" ? [name] : [])));
  const [known, unused] = [namesOf(stored), namesOf(overridden)];
  changes.forEach(({ name, apiKeys }, index) => {
    if (apiKeys.length === 0) return;
    const field = `changes[${index}].api_keys`;
    if (!known.has(name)) throw invalidField(field, `there is no stored provider ${name}`);
    if (unused.has(name))
      throw invalidField(
        field,
        `the configuration file, or the environment, has the provider ${name} with its credential`,
      );
  });
}

/** The texts of the changes by their index. Throws as `readEntry`. */
function readTexts(changes: readonly EntryChange[]): ReadonlyMap<number, ParsedYaml> {
  const length = changes.reduce((sum, { entry = "" }) => sum + entry.length, 0);
  if (length > MAX_STORED_LENGTH)
    throw invalidField("changes", `must have at most ${MAX_STORED_LENGTH / 1024} KiB of entries`);
  const texts = new Map<number, ParsedYaml>();
  changes.forEach(({ entry }, index) => {
    if (entry !== undefined && entry.trim() !== "") texts.set(index, readEntry(entry, `changes[${index}].entry`));
  });
  return texts;
}

/** The YAML of an entry, whose places are `:3:5`. Throws `invalid_request` for text that cannot be one. */
export function readEntry(entry: string, field: string): ParsedYaml {
  return reading(
    (place) => `${field}${place}`,
    () => readEntryYaml(entry),
  );
}
