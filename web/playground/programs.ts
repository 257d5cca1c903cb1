import type { Json } from "./formats/json.ts";

/** A request as a program that reads the API key from `PARLEY_API_KEY` and runs as pasted. */
export interface Program {
  readonly name: string;
  /** Prerequisites. */
  readonly needs: string;
  /** `origin` is the origin of this page, such as `http://127.0.0.1:8080`. */
  readonly write: (request: Json, origin: string) => string;
}

/** A POST with a header for the key. */
export function curl(path: string, headers: readonly string[]): Program {
  const lines = [...headers, "content-type: application/json"].map((header) =>
    // A shell replaces variables in double quotes only.
    header.includes("$") ? `  -H "${header}" \\` : `  -H '${header}' \\`,
  );
  return {
    name: "curl",
    needs: "Shell, with PARLEY_API_KEY set",
    // A quoted here-document needs no escaping, and the length of command-line arguments is limited.
    write: (request, origin) => `curl -N '${origin}${path}' \\
${lines.join("\n")}
  --data-binary @- <<'REQUEST'
${JSON.stringify(request, null, 2)}
REQUEST`,
  };
}

/** Fields without an argument in the official Python clients, sent as `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set(["fallback_models", "image_config", "parley", "modalities"]);

interface Sdk {
  readonly needs: string;
  readonly imports: string;
  /** Lines that create the client, for an origin. */
  readonly client: (origin: string) => string;
  /** The call up to its arguments, and the lines that print the stream. */
  readonly call: string;
  readonly print: string;
}

/** A program for an official Python client. */
export function python({ needs, imports, client, call, print }: Sdk): Program {
  return {
    name: "Python",
    needs,
    write: (request, origin) => `import os

${imports}

${client(origin)}

${call}(
${pythonArguments(request)}
)
${print}
print()`,
  };
}

/** A program for an official Node client. */
export function node({ needs, imports, client, call, print }: Sdk): Program {
  return {
    name: "Node",
    needs,
    write: (request, origin) => `${imports}

${client(origin)}

${call}(${JSON.stringify(request, null, 2)});
${print}
console.log();`,
  };
}

function pythonArguments(request: Json): string {
  const known = Object.entries(request).filter(([name]) => !EXTRAS.has(name));
  const extra = Object.entries(request).filter(([name]) => EXTRAS.has(name));
  const all = extra.length === 0 ? known : [...known, ["extra_body", Object.fromEntries(extra)] as const];
  return all.map(([name, value]) => `    ${name}=${toPython(value, "    ")},`).join("\n");
}

/** Formats JSON as a Python literal. Python strings use the same escapes as JSON. */
function toPython(value: unknown, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const items = Array.isArray(value)
    ? value.map((item) => toPython(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${toPython(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return items.length === 0 ? `${open}${close}` : `${open}\n${inner}${items.join(`,\n${inner}`)},\n${indent}${close}`;
}
