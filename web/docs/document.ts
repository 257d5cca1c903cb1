import { CHAT_PROGRAMS } from "../playground/formats/formats.ts";

/** The parts of an OpenAPI document that this page uses. */
export interface ApiDocument {
  readonly info: object;
  readonly tags: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly servers: readonly object[];
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

type Schema = Readonly<Record<string, unknown>>;

const HELLO = {
  model: "alpha-haiku-4.5",
  messages: [{ role: "user", content: "Hello!" }],
  fallback_models: ["beta-3-flash"],
  stream: true,
};

/** Adds the server URL, the code samples with that URL, and a section for each schema. */
export function forRedoc(document: ApiDocument, origin: string): ApiDocument {
  const programs: Readonly<Record<string, readonly object[]>> = {
    "/v1/chat/completions": CHAT_PROGRAMS.map(({ name, write }) => sample(name, write(HELLO, origin))),
    "/v1/models": [sample("curl", `curl '${origin}/v1/models' \\\n  -H "authorization: Bearer $PARLEY_API_KEY"`)],
  };
  const { schemas } = document.components;
  const sections = (name: string, description: string, isPart: (schema: string) => boolean) => {
    const parts = Object.entries(schemas).filter(([schema]) => isPart(schema));
    return { name, description: [description, ...parts.map(toSection)].join("\n\n") };
  };
  return {
    ...document,
    info: { ...document.info, title: "API reference" },
    servers: [{ url: origin }],
    tags: [
      ...document.tags,
      sections(
        "Objects",
        "Objects in requests and responses of the OpenAI and Gemini formats.",
        (name) => !name.includes("."),
      ),
      sections("Messages", "Messages of the `parley.v1` contract, with their JSON field names.", (name) =>
        name.includes("."),
      ),
    ],
    paths: mapValues(document.paths, (operations, path) =>
      mapValues(operations, (operation) => ({ ...operation, "x-codeSamples": programs[path] })),
    ),
    components: { ...document.components, schemas: mapValues(schemas, withoutConditions) },
  };
}

/** Removes `allOf` from a schema: Redoc would show the conditions of a message in place of its fields. */
function withoutConditions(schema: Schema): Schema {
  const { allOf: _, ...rest } = schema;
  return rest;
}

/** Returns a section for a schema, without an example: those are at the operations. Redoc shows descriptions of enumerations, but none of objects. */
function toSection([name, { description, enum: values }]: readonly [string, Schema]): string {
  const text = values === undefined && typeof description === "string" ? description : "";
  return `# ${name}\n\n${text}\n\n<SchemaDefinition schemaRef="#/components/schemas/${name}" showExample={false} />`;
}

function sample(label: string, source: string): object {
  return { lang: { curl: "Shell", Node: "JavaScript" }[label] ?? label, label, source };
}

function mapValues<T, R>(of: Readonly<Record<string, T>>, map: (value: T, key: string) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(of).map(([key, value]) => [key, map(value, key)]));
}
