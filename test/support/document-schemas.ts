import { Ajv2020 } from "ajv/dist/2020.js";

/** Validates a value and returns one line per error. */
type FindFaults = (value: unknown) => string[];

/** The schemas of an OpenAPI document. */
export interface DocumentSchemas {
  /** Returns the validator of a schema by its path, such as `/components/schemas/Model`, with unescaped names. */
  at(...place: readonly string[]): FindFaults;
}

/** Compiles a document's schemas; `strict` ones refuse undocumented properties of objects. */
export function schemasOf(document: object, strictness: "open" | "strict" = "open"): DocumentSchemas {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, validateFormats: false });
  ajv.addSchema({
    $id: "https://document.invalid/",
    ...(strictness === "strict" ? (closed(document) as object) : document),
  });
  return {
    at(...place) {
      const pointer = place.map((name) => `/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`);
      const validate = ajv.compile({ $ref: `https://document.invalid/#${pointer.join("")}` });
      return (value) =>
        validate(value)
          ? []
          : (validate.errors ?? []).map(
              ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
            );
    },
  };
}

/** Returns a schema whose objects permit only the listed properties. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isObject = (copy as { type?: unknown }).type === "object" && "properties" in copy;
  return isObject && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}
