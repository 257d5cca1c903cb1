import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type JsonSchema, refTo } from "./components.ts";

/*
 * The schemas of the contract's messages in protobuf's own JSON. What they mean stands in the .proto files, whose comments
 * are not in the generated code.
 */

/** The schemas of these messages and of all that they hold, by their full names. */
export function protoSchemas(roots: readonly DescMessage[]): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  const add = (message: DescMessage): void => {
    if (message.typeName in schemas) return;
    schemas[message.typeName] = toSchema(message);
    for (const field of message.fields) {
      if (field.message !== undefined) add(field.message);
      if (field.enum !== undefined) schemas[field.enum.typeName] ??= enumSchema(field.enum);
    }
  };
  for (const root of roots) add(root);
  return Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function toSchema({ fields, oneofs }: DescMessage): JsonSchema {
  const groups = oneofs.filter(({ fields: { length } }) => length > 1);
  return {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field.jsonName, fieldSchema(field)])),
    // At most one of each group: no two of it together.
    ...(groups.length > 0 && {
      allOf: groups.map((group) => ({
        oneOf: [
          { not: { anyOf: group.fields.map(({ jsonName }) => ({ required: [jsonName] })) } },
          ...group.fields.map(({ jsonName }) => ({ required: [jsonName] })),
        ],
      })),
    }),
  };
}

function fieldSchema(field: DescField): JsonSchema {
  if (field.fieldKind === "map") {
    const value =
      field.mapKind === "scalar" ? scalarSchema(field.scalar) : refTo((field.message ?? field.enum).typeName);
    return { type: "object", additionalProperties: value };
  }
  const inner = field.message ?? field.enum;
  const one = inner === undefined ? scalarSchema(field.scalar!) : refTo(inner.typeName);
  return field.fieldKind === "list" ? { type: "array", items: one } : one;
}

function enumSchema({ values }: DescEnum): JsonSchema {
  return { type: "string", enum: values.map(({ name }) => name) };
}

function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: ["number", "string"], description: "A number; or `NaN`, `Infinity`, `-Infinity`." };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return {
        type: ["string", "integer"],
        format: "int64",
        description: "Written as text, which may be longer than a number.",
      };
    default:
      return { type: "integer", format: "int32" };
  }
}
