import type { ConfigPath, Problem } from "./config-error.ts";
import type { Environment } from "./environment.ts";

/** A value with its `${NAME}`s filled in; what went wrong; and which variables each changed string used. */
export interface Interpolation {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  readonly variables: ReadonlyMap<string, readonly string[]>;
}

/** Identifies a path in a Map. */
export function pathKey(path: ConfigPath): string {
  return JSON.stringify(path);
}

/** Fills `${NAME}` in every string (never in keys) from `env`. An unset or empty variable is a problem that names it. */
export function interpolate(value: unknown, env: Environment): Interpolation {
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
      // The schema's records skip this name in silence; nothing configured may be skipped in silence.
      if (key === "__proto__") problems.push({ path: [...path, key], text: "this cannot be a name", atKey: true });
      else copy[key] = walk(item, [...path, key]);
    }
    return copy;
  };

  return { value: walk(value, []), problems, variables };
}
