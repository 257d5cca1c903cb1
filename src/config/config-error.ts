/** Path of a setting from the top of the configuration. */
export type ConfigPath = readonly (string | number)[];

/** One mistake in the configuration. The text says how to correct it and never repeats a configured value. */
export interface Problem {
  readonly path: ConfigPath;
  readonly text: string;
  /** The key itself is wrong, not its value. */
  readonly atKey?: true;
  /** The environment variable that is wrong, whichever setting it is for. */
  readonly variable?: string;
}

/** Collects problems, so that one run reports all of them. */
export type Report = (path: ConfigPath, text: string) => void;

/** Problems listed in the message: one slip can cause many more. */
const MAX_LINES = 20;

/** The configuration cannot be used. The message is for people: one line per problem, with its place and no secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** One per problem: its place (`parley.yaml:3:5`, or an environment variable) and its text. */
  readonly lines: readonly string[];

  constructor(summary: string, problems: readonly string[]) {
    const distinct = [...new Set(problems)];
    const surplus = distinct.length - MAX_LINES;
    const lines = distinct.slice(0, MAX_LINES).map((line) => `  ${line}`);
    super([summary, ...lines, ...(surplus > 0 ? [`  … and ${surplus} more`] : [])].join("\n"));
    this.lines = distinct;
  }
}

/** A longer name is cut: after a forgotten colon or comma it may be a credential. Its line and column are given anyway. */
const MAX_NAME_LENGTH = 24;

/** Formats a path such as `providers.alpha.api_keys[0]`; quotes unusual keys. Empty for the top. */
export function formatPath(path: ConfigPath): string {
  return path
    .map((step, index) => {
      if (typeof step === "number") return `[${step}]`;
      const name = step.length > MAX_NAME_LENGTH ? `${step.slice(0, MAX_NAME_LENGTH / 2)}…` : step;
      if (!/^[\w…-]+$/.test(name)) return `[${quote(name)}]`;
      return index === 0 ? name : `.${name}`;
    })
    .join("");
}

/** Quotes as JSON, and also escapes what JSON leaves as it is but terminals act on: control and bidirectional characters. */
function quote(name: string): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, escape);
}
