import type { ConfigPath } from "../config-error.ts";
import { isRecord } from "../document.ts";

/** A reference to a variable, in LiteLLM's way. */
const VARIABLE = /^os\.environ\/([A-Za-z_]\w*)$/;

/**
 * A map of LiteLLM's file that remembers which of its keys were read. A value of another type than asked for counts as not read,
 * so that it is listed with the keys that Parley does not know.
 */
export class Part {
  readonly path: ConfigPath;
  readonly #value: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  constructor(value: unknown, path: ConfigPath) {
    this.path = path;
    this.#value = isRecord(value) ? value : {};
  }

  /** The value, whatever it is; undefined for null too. */
  take(key: string): unknown {
    this.#read.add(key);
    return this.#value[key] ?? undefined;
  }

  /** A text or a number as text, with `os.environ/NAME` as `${NAME}`. */
  takeText(key: string): string | undefined {
    const value = this.#value[key];
    if (typeof value !== "string" && typeof value !== "number") return undefined;
    this.#read.add(key);
    return toParleyText(String(value));
  }

  /** A number, also as text, with `_` between digits, which LiteLLM's parser permits. */
  takeNumber(key: string): number | undefined {
    const value = this.#value[key];
    const number = typeof value === "string" && value.trim() !== "" ? Number(value.replaceAll("_", "")) : value;
    if (typeof number !== "number" || !Number.isFinite(number)) return undefined;
    this.#read.add(key);
    return number;
  }

  takeBoolean(key: string): boolean | undefined {
    const value = this.#value[key];
    if (typeof value !== "boolean") return undefined;
    this.#read.add(key);
    return value;
  }

  /** A map below this one; empty when there is none. */
  part(key: string): Part {
    const value = this.#value[key];
    if (isRecord(value)) this.#read.add(key);
    return new Part(value, [...this.path, key]);
  }

  /** A list; empty when there is none. */
  list(key: string): readonly unknown[] {
    const value = this.#value[key];
    if (!Array.isArray(value)) return [];
    this.#read.add(key);
    return value;
  }

  keys(): readonly string[] {
    return Object.keys(this.#value);
  }

  /** Keys that were not read and have a value. */
  unread(): readonly string[] {
    return this.keys().filter((key) => !this.#read.has(key) && this.#value[key] !== null);
  }
}

/** A text of LiteLLM's file as it is written in Parley's: `os.environ/NAME` is `${NAME}`. */
export function toParleyText(text: string): string {
  return text.trim().replace(VARIABLE, "${$1}");
}

/** Whether a converted text is read from a variable. */
export function isVariable(text: string): boolean {
  return text.includes("${");
}

/** The file's value with YAML's merge keys (`<<: *defaults`) applied, which LiteLLM's parser knows. */
export function withMerges(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMerges);
  if (!isRecord(value)) return value;
  const { "<<": merged, ...own } = value;
  const sources = (Array.isArray(merged) ? merged.toReversed() : [merged]).filter(isRecord);
  const joined = Object.assign({}, ...sources, own) as Record<string, unknown>;
  return Object.fromEntries(Object.entries(joined).map(([key, item]) => [key, withMerges(item)]));
}
