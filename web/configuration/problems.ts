import { readFailure } from "../api/failure.ts";

/** An error in one part of a change. */
export interface Problem {
  /** Index of the change; 0 for a request without several. */
  readonly index: number;
  /** Name of the field: `entry`, `name`, `api_keys`, `document`; empty for the whole change. */
  readonly part: string;
  /** Place in the text, from 1; 0 for the whole text. */
  readonly line: number;
  readonly column: number;
  readonly text: string;
}

/** A failed change, for a form. */
export interface Problems {
  /** For errors that name no part of the change. */
  readonly message: string;
  readonly all: readonly Problem[];
}

const FIELD = /^(?:changes\[(\d+)\]\.?)?([a-z_]*)(?:\[\d+\])?(?::(\d+):(\d+))?$/;

/** Prefix of a description that names the entry, removed because the form shows the entry: `models["a/b"].price: must be …`. */
const OWN_PATH = /^(?:providers|models|aliases|timeouts|limits|retries|breaker)(?:\["[^"]*"\]|\.[^.:\s[]+)(?:\.|: )/i;

/** Reads the violations of a change, such as `changes[0].entry:3:5`. Undefined without an error, and when it was cancelled. */
export function readProblems(error: unknown): Problems | undefined {
  const failing = error == null ? undefined : readFailure(error);
  if (failing === undefined) return undefined;
  const all = Array.from(failing.fields, ([field, text]): Problem => {
    const [, index = "0", part = "", line = "0", column = "0"] = FIELD.exec(field) ?? [];
    const own = part === "entry" ? text.replace(OWN_PATH, "") : text;
    return { index: Number(index), part, line: Number(line), column: Number(column), text: own };
  });
  return { message: failing.message, all: all.toSorted((one, other) => one.line - other.line) };
}

/** Returns one line per problem, with its place: `Line 3, column 5: Must be a number.` */
export function describeProblems(problems: readonly Problem[]): string | undefined {
  if (problems.length === 0) return undefined;
  return problems
    .map(({ line, column, text }) => (line === 0 ? text : `Line ${line}, column ${column}: ${text}`))
    .join("\n");
}
