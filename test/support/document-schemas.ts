import { Ajv2020 } from "ajv/dist/2020.js";

/** Says what is wrong with a value by a schema, one line for each thing; nothing when it is as the schema says. */
export type FindFaults = (value: unknown) => string[];

/** The schemas of an OpenAPI document, to hold values against. */
export interface DocumentSchemas {
  /** By its place, such as `/components/schemas/Model`; the names in it are not escaped. */
  at(...place: readonly string[]): FindFaults;
}

/** Takes a document's schemas as they are, or as `strict` ones, by which an object has no field that is not documented. */
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

/** The same schema, by which objects have only the fields that it names. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isObject = (copy as { type?: unknown }).type === "object" && "properties" in copy;
  return isObject && !("additionalProperties" in copy) ? { ...copy, additionalProperties: false } : copy;
}
