import type { ChatJson } from "./chat-json.ts";

/** A request as a program that reads the API key from `PARLEY_API_KEY` and runs as pasted. */
export interface Program {
  readonly name: string;
  /** Prerequisites. */
  readonly needs: string;
  /** `origin` is the origin of this page, such as `http://127.0.0.1:8080`. */
  readonly write: (request: ChatJson, origin: string) => string;
}

/** Fields without an argument in the official Python client, sent as `extra_body`. */
const EXTRAS: ReadonlySet<string> = new Set(["fallback_models", "image_config", "parley", "modalities"]);

export const PROGRAMS: readonly Program[] = [
  {
    name: "curl",
    needs: "Shell, with PARLEY_API_KEY set",
    // A quoted here-document needs no escaping, and the length of command-line arguments is limited.
    write: (request, origin) => `curl -N '${origin}/v1/chat/completions' \\
  -H "authorization: Bearer $PARLEY_API_KEY" \\
  -H 'content-type: application/json' \\
  --data-binary @- <<'REQUEST'
${JSON.stringify(request, null, 2)}
REQUEST`,
  },
  {
    name: "Python",
    needs: "pip install openai",
    write: (request, origin) => `import os

from openai import OpenAI

client = OpenAI(
    base_url="${origin}/v1",
    api_key=os.environ["PARLEY_API_KEY"],
)

stream = client.chat.completions.create(
${pythonArguments(request)}
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()`,
  },
  {
    name: "Node",
    needs: "npm install openai; save as try.mjs",
    write: (request, origin) => `import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "${origin}/v1",
  apiKey: process.env.PARLEY_API_KEY,
});

const stream = await client.chat.completions.create(${JSON.stringify(request, null, 2)});
for await (const chunk of stream) {
  for (const { delta } of chunk.choices) process.stdout.write(delta.content ?? "");
}
console.log();`,
  },
];

function pythonArguments(request: ChatJson): string {
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
