/** A place in the configuration, from its top. */
export type ConfigPath = readonly (string | number)[];

/** One thing that is wrong. The text says what would be right and never repeats a configured value. */
export interface Problem {
  readonly path: ConfigPath;
  readonly text: string;
  /** The key itself is wrong, not what it holds. */
  readonly atKey?: true;
  /** It is about this environment variable, wherever that would go. */
  readonly variable?: string;
}

/** Collects problems, so that one run reports all of them. */
export type Report = (path: ConfigPath, text: string) => void;

/** One slip can upset everything after it; more lines than these help nobody. */
const MAX_LINES = 20;

/** The configuration cannot be used. The message is for people: one line per problem, with its place and no secret. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** One per problem: where it is (`parley.yaml:3:5`, or an environment variable), and what it is. */
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

/** `providers.alpha.api_keys[0]`; keys that need it are quoted. Empty for the top. */
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

/** As JSON, without what JSON leaves as it is and a terminal obeys: control characters, and those that turn text around. */
function quote(name: string): string {
  const escape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, escape);
}
