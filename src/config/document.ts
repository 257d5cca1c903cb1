import { type Document, isMap, isScalar, isSeq, Lexer, LineCounter, type Pair, parseDocument, visit } from "yaml";
import { ConfigError, type ConfigPath, type Problem } from "./config-error.ts";
import type { Environment } from "./environment.ts";

/** A parsed file: its plain value, and the place of each part in the file. */
export interface ConfigDocument {
  readonly value: unknown;
  /** `file:line:column` of a value or of its key; for a path that is not in the file, of the nearest part above it. */
  locate(path: ConfigPath, part: "key" | "value"): string;
}

/** Any parsed YAML. */
export interface ParsedYaml extends ConfigDocument {
  readonly tree: Document.Parsed;
  /** `file:line:column` of an offset in the text. */
  readonly placeAt: (offset: number) => string;
}

/** Larger than any real file; keeps a wrong path (a log, a device) from being parsed. */
const MAX_LENGTH = 1024 * 1024;

/** Deeper than any setting. */
const MAX_DEPTH = 32;

/** Maximum number of problems that are described for one text: each costs a search for its place. */
export const MAX_PROBLEMS = 100;

/** Error texts by the parser's code. The parser's own texts quote the source, which may hold secrets. */
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_INDENT: "the indentation does not fit, or a bracket is not closed",
  DUPLICATE_KEY: "this key is written twice; keep one",
  MISSING_CHAR: "a colon, comma, bracket or quote is missing",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line, followed by a colon",
  MULTIPLE_DOCS: "there is a second document (---); keep one",
  RESOURCE_EXHAUSTION: "it is nested too deeply",
  TAB_AS_INDENT: "tabs cannot indent; use spaces",
  UNEXPECTED_TOKEN: "unexpected text; text with special characters needs quotes",
};

/** Parses YAML. Throws ConfigError for anything but one well-formed map without repeated keys. */
export function readDocument(text: string, file: string): ParsedYaml {
  const document = readYaml(text, file);
  const fail = (problem: string): never => {
    throw new ConfigError(`${file} cannot be read as configuration:`, [`${file}:1:1: ${problem}`]);
  };
  // An empty file is more likely half-written than a request for all defaults.
  if (document.value === null) fail("the file is empty; write {} for all the defaults");
  if (!isRecord(document.value)) fail("it must be a map of sections, such as `http: { … }`");
  return document;
}

/** Parses any YAML. Throws ConfigError for text that is not well-formed, and for repeated keys. */
export function readYaml(text: string, file: string): ParsedYaml {
  const summary = `${file} cannot be read as configuration:`;
  const fail = (place: string, problem: string): never => {
    throw new ConfigError(summary, [`${place}: ${problem}`]);
  };
  if (text.length > MAX_LENGTH) fail(`${file}:1:1`, "the file is larger than 1 MiB; this is not a configuration file");
  if (text.includes("\0")) fail(`${file}:1:1`, "the text contains a NUL character");

  const lineCounter = new LineCounter();
  const at = (offset: number): string => {
    const { line, col } = lineCounter.linePos(offset);
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  const { document, value } = parse(text, lineCounter) ?? fail(`${file}:1:1`, "it is nested too deeply");
  const mistakes = [...document.errors, ...document.warnings].map(({ code, pos }) => ({ code, offset: pos[0] }));
  const repeated = findRepeatedKeys(document).map((offset) => ({ code: "DUPLICATE_KEY", offset }));
  const problems = [...mistakes, ...repeated]
    .slice(0, MAX_PROBLEMS)
    .map(({ code, offset }) => `${at(offset)}: ${SYNTAX[code] ?? `this is not valid YAML (${code})`}`);
  if (problems.length > 0) throw new ConfigError(summary, problems);
  return { value, tree: document, placeAt: at, locate: (path, part) => at(offsetOf(document, path, part)) };
}

/** Offsets of keys that their map has already. The parser's own check compares each key with all others of its map. */
function findRepeatedKeys(document: Document.Parsed): number[] {
  const found: number[] = [];
  visit(document, {
    Map(_, { items }) {
      const known = new Set<string>();
      for (const { key } of items) {
        // Under YAML 1.1 `<<` is a symbol, and may be repeated.
        if (!isScalar(key) || typeof key.value === "symbol") continue;
        if (known.size === known.add(String(key.value)).size) found.push(startOf(key) ?? 0);
      }
    },
  });
  return found;
}

/**
 * Undefined when the text is nested too deeply, also by an alias inside its own part, or when aliases repeat without bound.
 */
function parse(text: string, lineCounter: LineCounter): { document: Document.Parsed; value: unknown } | undefined {
  if (opensTooMuch(text)) return undefined;
  try {
    const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: "error", uniqueKeys: false });
    // toJS() could throw for a document with errors; those are reported instead.
    const value: unknown = document.errors.length > 0 ? undefined : document.toJS();
    return isDeeper(value, MAX_DEPTH) ? undefined : { document, value };
  } catch {
    return undefined;
  }
}

/** What the lexer puts before a scalar, and other marks of its own: they are not in the text. */
const SCALAR = "\x1f";
const MARKS: ReadonlySet<string> = new Set([SCALAR, "\x02", "\x18"]);

/**
 * Line and column, such as `:3:5`, of the first alias, tag or directive; undefined without any. Does not parse the text: the parser takes a
 * time that grows with the square of the number of aliases, and of the elements of some tags.
 */
export function findReference(text: string): string | undefined {
  let offset = 0;
  let isText = false;
  for (const token of new Lexer().lex(text)) {
    if (!isText && /^[*!%]/.test(token)) {
      const before = text.slice(0, offset).split("\n");
      return `:${before.length}:${before.at(-1)!.length + 1}`;
    }
    if (isText || !MARKS.has(token)) offset += token.length;
    isText = !isText && token === SCALAR;
  }
  return undefined;
}

/**
 * Whether more than MAX_DEPTH brackets are open at once, or as many lists and keys begin directly after each other on a line. The parser takes a time for
 * such a text that grows with the square of its length; the lexer does not.
 */
function opensTooMuch(text: string): boolean {
  let open = 0;
  let begun = 0;
  let isText = false;
  for (const token of new Lexer().lex(text)) {
    // The text after its mark is none of YAML's signs.
    if (isText) {
      isText = false;
      continue;
    }
    isText = token === SCALAR;
    if (token === "-" || token === "?" || token === ":") begun += 1;
    else if (token.trim() !== "" || token.includes("\n")) begun = 0;
    if (token === "[" || token === "{") open += 1;
    else if (token === "]" || token === "}") open = Math.max(open - 1, 0);
    if (open > MAX_DEPTH || begun > MAX_DEPTH) return true;
  }
  return false;
}

/** Whether the value has more than `levels` levels of maps and lists. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function offsetOf(document: Document.Parsed, path: ConfigPath, part: "key" | "value"): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const [index, step] of path.entries()) {
    const isLast = index === path.length - 1;
    if (isMap(node)) {
      const pair: Pair | undefined = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) break;
      offset = startOf(isLast && part === "value" ? (pair.value ?? pair.key) : pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = startOf(node) ?? offset;
    } else break;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];
}

/** A value with its `${NAME}`s replaced, the problems, and the variables used by each changed string. */
interface Interpolation {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  readonly variables: ReadonlyMap<string, readonly string[]>;
}

/** Key of a path in a Map. */
export function pathKey(path: ConfigPath): string {
  return JSON.stringify(path);
}

/**
 * Replaces `${NAME}` in every string (never in keys) from `env`. An unset or empty variable is a problem that names it, except in
 * the sections `unused`, which keep the text.
 */
export function interpolate(value: unknown, env: Environment, unused: readonly string[] = []): Interpolation {
  const problems: Problem[] = [];
  const variables = new Map<string, string[]>();

  const fill = (text: string, path: ConfigPath): string => {
    const used: string[] = [];
    const filled = text.replace(/\$\{([^}]*)\}?/g, (whole, name: string) => {
      if (!/^[A-Za-z_]\w*$/.test(name) || !whole.endsWith("}")) {
        problems.push({ path, text: "a variable is written ${NAME}, with letters, digits and underscores" });
        return "";
      }
      used.push(name);
      const content = env[name];
      if (!content && unused.includes(String(path[0]))) return whole;
      if (!content) {
        const state = content === undefined ? "not set" : "empty";
        problems.push({ path, text: `the environment variable ${name} is ${state}; set it, or write the value here` });
      }
      return content ?? "";
    });
    if (used.length > 0) variables.set(pathKey(path), used);
    return filled;
  };

  const walk = (part: unknown, path: ConfigPath): unknown => {
    if (typeof part === "string") return fill(part, path);
    if (Array.isArray(part)) return part.map((item, index) => walk(item, [...path, index]));
    if (part === null || typeof part !== "object" || Object.getPrototypeOf(part) !== Object.prototype) return part;
    const copy: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(part)) {
      // The schema's records skip this name silently; no configured key may be skipped silently.
      if (key === "__proto__") problems.push({ path: [...path, key], text: "this cannot be a name", atKey: true });
      else copy[key] = walk(item, [...path, key]);
    }
    return copy;
  };

  return { value: walk(value, []), problems, variables };
}

/** Whether a value of the file is a map. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
