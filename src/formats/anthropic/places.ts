import { Failure, type FieldViolation } from "../../core/failure.ts";
import { MAX_PARTS, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { NameOf } from "../format.ts";

/** Limit of characters of a caller's key in reports and errors. */
export const MAX_KEY_CHARS = 64;

/** Names of fields that the contract does not have, up to MAX_UNRECOGNIZED. */
export class Unrecognized {
  readonly names: string[] = [];

  /** Whether MAX_UNRECOGNIZED is reached, so that further names are dropped. */
  get full(): boolean {
    return this.names.length >= MAX_UNRECOGNIZED;
  }

  add(name: string): void {
    if (!this.full) this.names.push(name);
  }

  /** Adds the unknown keys whose value is not null. `path`: path of the object, with a dot at the end; empty for the request. */
  addKeys(given: object, known: ReadonlySet<string>, path: string): void {
    for (const key in given) {
      if (this.full) return;
      if (!known.has(key) && (given as Readonly<Record<string, unknown>>)[key] != null)
        this.add(path + key.slice(0, MAX_KEY_CHARS));
    }
  }
}

/** The place of a part in the caller's request. */
export interface Place {
  /** Index of the caller's message; -1 for the field `system`. */
  readonly message: number;
  /** Index of the block; -1 for a message whose content is text. */
  readonly block: number;
}

const BLOCKS = MAX_PARTS + 1;

/** The places of a request's messages and parts, as numbers: the conversation is released before the report is written. */
export class Places {
  readonly #messages: number[] = [];
  readonly #parts: number[][] = [];
  #last: number[] = [];

  /** Begins the message `at`. `from`: index of the caller's message; -1 for the field `system`. */
  begin(from: number, at: number): void {
    this.#last = [];
    this.#messages.splice(at, 0, from);
    this.#parts.splice(at, 0, this.#last);
  }

  /** Adds the next part of the message that was begun last. */
  add({ message, block }: Place): void {
    this.#last.push((message + 1) * BLOCKS + block + 1);
  }

  /** The caller's path of a message; undefined for one that does not exist. */
  ofMessage(message: number): string | undefined {
    const from = this.#messages[message];
    if (from === undefined) return undefined;
    return from < 0 ? "system" : `messages.${from}`;
  }

  /** The caller's path of a part; undefined for one that does not exist. */
  ofPart(message: number, part: number): string | undefined {
    const packed = this.#parts[message]?.[part];
    if (packed === undefined) return undefined;
    const from = Math.floor(packed / BLOCKS) - 1;
    const block = (packed % BLOCKS) - 1;
    const content = from < 0 ? "system" : `messages.${from}.content`;
    return block < 0 ? content : `${content}.${block}`;
  }
}

/** Contract names and their names in this format, most specific first. */
const NAMES: readonly (readonly [contract: RegExp, own: string])[] = [
  [/^max_output_tokens\b/, "max_tokens"],
  [/^reasoning\.max_tokens\b/, "thinking.budget_tokens"],
  [/^response_format\.json_schema\.schema_json\b/, "output_config.format.schema"],
  [/^response_format(?:\.json_schema)?\b/, "output_config.format"],
  [/^(?:end_user_id|safety_identifier)\b/, "metadata.user_id"],
  [/^parallel_tool_calls\b/, "tool_choice.disable_parallel_tool_use"],
  [/^session_id\b/, "x-claude-code-session-id"],
  [/^provider_options_json\.anthropic\.betas\b/, "anthropic-beta"],
  [/^provider_options_json\.anthropic\.billing_text\b/, "system.0"],
  [/^provider_options_json\.anthropic\./, ""],
  [/^(tools\[\d+\])\.function\.parameters_json\b/, "$1.input_schema"],
  [/^(tools\[\d+\])\.(?:function|native\.json|native)\b/, "$1"],
  [/\.cache_mark\b/, ".cache_control"],
];

/** As NAMES, for paths within a part. */
const PART_NAMES: readonly (readonly [contract: RegExp, own: string])[] = [
  [/^\.parts$/, ".content"],
  [/^\.tool_result\.tool_call_id\b/, ".tool_use_id"],
  [/^\.tool_result\.parts\b/, ".content"],
  [/^\.(?:tool_result|tool_call|native)\b/, ""],
  [/^(\.content\[\d+\])?\.(?:file|image)\.(?:url|data)\b/, "$1.source"],
  [/^(\.content\[\d+\])?\.file\.name\b/, "$1.title"],
  [/^(\.content\[\d+\])?\.(?:file|image|native)\b/, "$1"],
  [/\.cache_mark\b/, ".cache_control"],
];

const PART = /^messages\[(\d+)\](?:\.parts\[(\d+)\])?/;

/** Facts of a request on which its field names depend. */
interface NamedRequest {
  readonly places: Places;
  readonly unrecognized: readonly string[];
  /** The caller's field from which the effort was read. */
  readonly effortField: string;
}

/** Returns the caller's names of a request's fields, in the vendor's style: `messages.0.content.1.source`. */
export function fieldNames({ places, unrecognized, effortField }: NamedRequest): NameOf {
  return (path) => {
    if (unrecognized.includes(path)) return path;
    if (path === "reasoning.effort") return effortField;
    const found = PART.exec(path);
    if (found === null) return dotted(replaced(path, NAMES));
    const [whole, message, part] = found;
    const rest = replaced(path.slice(whole.length), PART_NAMES);
    const place = part === undefined ? places.ofMessage(Number(message)) : places.ofPart(Number(message), Number(part));
    return place === undefined ? dotted(path) : dotted(place + rest);
  };
}

function replaced(path: string, names: typeof NAMES): string {
  return names.reduce((name, [contract, own]) => name.replace(contract, own), path);
}

function dotted(path: string): string {
  return path.replace(/\[(\d+)\]/g, ".$1");
}

/** A failure of the shape of a request, with the paths in the vendor's style. */
export function withDottedPaths(failure: Failure): Failure {
  const [first] = failure.violations;
  if (first === undefined) return failure;
  const violations = failure.violations.map(({ field, description }): FieldViolation => ({
    field: dotted(field),
    description,
  }));
  const message = dotted(first.field) + failure.message.slice(first.field.length);
  return failure.with({ violations, message });
}
