import { Document, isAlias, isMap, isScalar, type Pair, stringify, visit, YAMLMap } from "yaml";
import { ConfigError } from "./config-error.ts";
import { isRecord, type ParsedYaml, readDocument, readYaml } from "./document.ts";
import { HIDDEN } from "./settings.ts";
import { KEY_FILE } from "./scalars.ts";
import {
  MAX_STORED_ENTRIES,
  MAX_STORED_LENGTH,
  STORED_NAME,
  STORED_SECTIONS,
  type StoredConfiguration,
  type StoredSection,
} from "./stored.ts";

/** A new entry, or one to remove. */
export interface EntryEdit {
  readonly section: StoredSection;
  readonly name: string;
  /** Undefined: the entry is removed. */
  readonly entry: ParsedYaml | undefined;
}

/** An entry of a document. */
export interface DocumentEntry {
  readonly section: StoredSection;
  readonly name: string;
  /** YAML. */
  readonly entry: string;
}

/** An entry that differs between two documents; undefined where there is none. */
export interface EntryDifference {
  readonly section: StoredSection;
  readonly name: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** A parsed stored document. */
export interface StoredDocument extends ParsedYaml {
  readonly text: string;
  /** In the document's order. */
  readonly entries: readonly DocumentEntry[];
}

type WithDocument = Pick<StoredConfiguration, "document">;

const PARSED = new WeakMap<WithDocument, StoredDocument>();

/** The document of a stored configuration or of a version, parsed once. Throws as `readStored`. */
export function documentOf(stored: WithDocument): StoredDocument {
  const known = PARSED.get(stored);
  if (known !== undefined) return known;
  const parsed = readStored(stored.document);
  PARSED.set(stored, parsed);
  return parsed;
}

/** The entries of a stored configuration or of a version; none of one that cannot be read. */
export function entriesOf(stored: WithDocument): readonly DocumentEntry[] {
  try {
    return documentOf(stored).entries;
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

/** A stored configuration with a document that is parsed already. */
export function withDocument(
  document: StoredDocument,
  others: Omit<StoredConfiguration, "document">,
): StoredConfiguration {
  const stored = { ...others, document: document.text };
  PARSED.set(stored, document);
  return stored;
}

/** Parses a stored document; an empty text has no entries. Throws ConfigError. */
export function readStored(text: string): StoredDocument {
  const fail = (problem: string): never => {
    throw new ConfigError(`${STORED_NAME} cannot be read:`, [`${STORED_NAME}:1:1: ${problem}`]);
  };
  if (text.length > MAX_STORED_LENGTH)
    fail(`the stored configuration must have at most ${MAX_STORED_LENGTH / 1024} KiB`);
  const parsed = readDocument(text === "" ? "{}" : text, STORED_NAME);
  requirePlain(parsed, STORED_NAME);
  const root = parsed.tree.contents as unknown as YAMLMap;
  const entries = STORED_SECTIONS.flatMap((section) => {
    const named = findPair(root, section)?.value;
    return isMap(named) ? named.items.map((pair) => toEntry(section, pair)) : [];
  });
  if (entries.length > MAX_STORED_ENTRIES) {
    const limit = MAX_STORED_ENTRIES.toLocaleString("en");
    fail(
      `the stored configuration has ${entries.length} entries and must have at most ${limit}; one entry can import all models of a provider`,
    );
  }
  return { ...parsed, text, entries };
}

/** Parses an entry, whose places are `:3:5`. Throws ConfigError. */
export function readEntryYaml(text: string): ParsedYaml {
  const parsed = readYaml(text, "");
  requirePlain(parsed, "");
  return parsed;
}

const NOT_PLAIN =
  "aliases (*NAME), tags (!NAME), << and directives (%NAME) are for the configuration file only, because entries are changed one by one; write it out";

/** Throws ConfigError for YAML that could not stand alone in an entry, or whose value differs from its text. */
function requirePlain({ tree, placeAt }: ParsedYaml, file: string): void {
  const { yaml, tags } = tree.directives;
  let offset: number | undefined = yaml.explicit === true || Object.keys(tags).length > 1 ? 0 : undefined;
  visit(tree, {
    Node(key, node) {
      const isMerge = key === "key" && isScalar(node) && (node.source === "<<" || typeof node.value === "symbol");
      const isPlain = !isAlias(node) && node.tag === undefined && !isMerge && (key !== "key" || isScalar(node));
      if (isPlain || offset !== undefined) return undefined;
      offset = node.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  if (offset !== undefined)
    throw new ConfigError(`${file} cannot be read as stored configuration:`, [`${placeAt(offset)}: ${NOT_PLAIN}`]);
}

/** An entry whose text is made when it is read. */
function toEntry(section: StoredSection, { key, value }: Pair): DocumentEntry {
  let text: string | undefined;
  return {
    section,
    name: nameOf(key),
    get entry() {
      return (text ??= toText(value));
    },
  };
}

/**
 * Changes a document; what is not changed keeps its form and its comments. The text is empty when nothing is left. Throws as `readStored`.
 */
export function editDocument(text: string, edits: readonly EntryEdit[]): string {
  // Not a shared one, because its tree is changed.
  const { tree } = readStored(text);
  const document = tree as Document;
  const root = document.contents as YAMLMap;
  root.flow = false;
  for (const [section, changes] of Map.groupBy(edits, (edit) => edit.section)) {
    const found = findPair(root, section)?.value;
    const named = isMap(found) ? found : new YAMLMap();
    if (named !== found) document.set(section, named);
    const pairs = new Map(named.items.map((pair) => [nameOf(pair.key), pair]));
    for (const { name, entry } of changes) {
      if (entry === undefined) pairs.delete(name);
      else pairs.set(name, document.createPair(name, entry.tree.contents));
    }
    named.items = [...pairs.values()];
    named.flow = false;
    if (named.items.length === 0) document.delete(section);
  }
  return root.items.length === 0 ? "" : document.toString(FORMAT);
}

/** The entries that differ between two documents, by section. */
export function differencesOf(old: readonly DocumentEntry[], current: readonly DocumentEntry[]): EntryDifference[] {
  const keyOf = ({ section, name }: DocumentEntry): string => `${section}.${name}`;
  const [before, after] = [old, current].map((entries) => new Map(entries.map((entry) => [keyOf(entry), entry])));
  const added = current.filter((entry) => !before!.has(keyOf(entry)));
  return [...old, ...added]
    .map((entry) => ({
      section: entry.section,
      name: entry.name,
      before: before!.get(keyOf(entry))?.entry,
      after: after!.get(keyOf(entry))?.entry,
    }))
    .filter((one) => one.before !== one.after);
}

/** The entry of a file as YAML, with credentials, header values and a proxy's password hidden unless they are `${NAME}`. */
export function describeEntry(section: StoredSection, entry: unknown): string {
  if (section !== "providers" || !isRecord(entry)) return stringify(entry, FORMAT).trimEnd();
  const hide = (value: unknown): unknown =>
    typeof value !== "string" || /^\$\{\w+\}$/.test(value) || value.startsWith(KEY_FILE) ? value : HIDDEN;
  const { api_keys: keys, headers, proxy, ...rest } = entry;
  const shown = {
    ...rest,
    ...(keys !== undefined && { api_keys: Array.isArray(keys) ? keys.map(hide) : HIDDEN }),
    ...(headers !== undefined && {
      headers: isRecord(headers)
        ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, hide(value)]))
        : HIDDEN,
    }),
    ...(proxy !== undefined && { proxy: proxy === "none" ? proxy : hide(proxy) }),
  };
  return stringify(shown, FORMAT).trimEnd();
}

/** Long texts stay on one line. */
const FORMAT = { lineWidth: 0 } as const;

function findPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => nameOf(key) === name);
}

/** Names such as `4` are numbers to YAML, and an empty one is null. */
function nameOf(key: unknown): string {
  return String(isScalar(key) ? (key.value ?? "") : key);
}

function toText(node: unknown): string {
  const document = new Document();
  document.contents = node as typeof document.contents;
  return document.toString(FORMAT).trimEnd();
}
