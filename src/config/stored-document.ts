import { Document, isMap, isScalar, LineCounter, type Pair, parseDocument, stringify, visit, YAMLMap } from "yaml";
import { isRecord } from "./document.ts";
import { HIDDEN } from "./settings.ts";
import { KEY_FILE } from "./scalars.ts";
import { STORED_SECTIONS, type StoredSection } from "./stored.ts";

/** A new entry, or one to remove. */
export interface EntryEdit {
  readonly section: StoredSection;
  readonly name: string;
  /** Well-formed YAML; undefined: the entry is removed. */
  readonly entry: string | undefined;
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

/** Changes a document; what is not changed keeps its form and its comments. The text is empty when nothing is left. */
export function editDocument(text: string, edits: readonly EntryEdit[]): string {
  const document = readable(text);
  const root = document.contents as YAMLMap;
  for (const { section, name, entry } of edits) {
    const found = findPair(root, section)?.value;
    const named = isMap(found) ? found : new YAMLMap();
    if (named !== found) document.set(section, named);
    const place = named.items.findIndex(({ key }) => nameOf(key) === name);
    if (entry === undefined) {
      if (place >= 0) named.items.splice(place, 1);
    } else {
      const pair = document.createPair(name, parseDocument(entry, SILENT).contents) as (typeof named.items)[number];
      if (place >= 0) named.items.splice(place, 1, pair);
      else named.items.push(pair);
    }
    named.flow = false;
    if (named.items.length === 0) document.delete(section);
  }
  return root.items.length === 0 ? "" : document.toString(FORMAT);
}

/** The entries of a document, in its order. */
export function entriesOf(text: string): DocumentEntry[] {
  const root = readable(text).contents as YAMLMap;
  return STORED_SECTIONS.flatMap((section) => {
    const named = findPair(root, section)?.value;
    if (!isMap(named)) return [];
    return named.items.map(({ key, value }) => ({ section, name: nameOf(key), entry: toText(value) }));
  });
}

/** The entries that differ between two documents, by section. */
export function differencesOf(before: string, after: string): EntryDifference[] {
  const [old, current] = [entriesOf(before), entriesOf(after)];
  const find = (entries: readonly DocumentEntry[], { section, name }: DocumentEntry): string | undefined =>
    entries.find((one) => one.section === section && one.name === name)?.entry;
  const added = current.filter((entry) => find(old, entry) === undefined);
  return [...old, ...added]
    .map((entry) => ({
      section: entry.section,
      name: entry.name,
      before: find(old, entry),
      after: find(current, entry),
    }))
    .filter(({ before: one, after: other }) => one !== other);
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

/** Line and column of the first alias of a YAML text: `:3:5`; undefined without one. An entry with one could not stand alone. */
export function findAlias(text: string): string | undefined {
  const lineCounter = new LineCounter();
  let offset: number | undefined;
  visit(parseDocument(text, { ...SILENT, lineCounter }), {
    Alias(_, { range }) {
      offset = range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  if (offset === undefined) return undefined;
  const { line, col } = lineCounter.linePos(offset);
  return `:${line}:${col}`;
}

/** Long texts stay on one line. */
const FORMAT = { lineWidth: 0 } as const;
const SILENT = { logLevel: "error" } as const;

/** The document of a text, or an empty one where there is no map. */
function readable(text: string): Document {
  const document = parseDocument(text, SILENT);
  if (document.errors.length === 0 && isMap(document.contents)) {
    document.contents.flow = false;
    return document;
  }
  return new Document(new YAMLMap());
}

function findPair(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => nameOf(key) === name);
}

/** Names such as `4` are numbers to YAML. */
function nameOf(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

function toText(node: unknown): string {
  const document = new Document();
  document.contents = node as typeof document.contents;
  return document.toString(FORMAT).trimEnd();
}
