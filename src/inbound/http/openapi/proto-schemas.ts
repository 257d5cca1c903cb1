import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  fromBinary,
  ScalarType,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type JsonSchema, refTo } from "./components.ts";

/** Messages that protobuf's JSON writes as strings. */
const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  "google.protobuf.Timestamp": { type: "string", format: "date-time", description: "A time by RFC 3339." },
  "google.protobuf.Duration": {
    type: "string",
    pattern: "^-?\\d+(\\.\\d{1,9})?s$",
    description: "Seconds with up to nine digits after the point, such as `1.5s`.",
  },
};

/** Schemas of messages and their inner messages in protobuf's JSON, by full name. */
export function protoSchemas(roots: readonly DescMessage[], comments: ProtoComments): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  const add = (message: DescMessage): void => {
    if (message.typeName in schemas || message.typeName in WELL_KNOWN) return;
    schemas[message.typeName] = toSchema(message, comments);
    for (const field of message.fields) {
      if (field.message !== undefined) add(field.message);
      if (field.enum !== undefined) schemas[field.enum.typeName] ??= enumSchema(field.enum, comments);
    }
  };
  for (const root of roots) add(root);
  return Object.fromEntries(Object.entries(schemas).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function toSchema({ typeName, fields, oneofs }: DescMessage, comments: ProtoComments): JsonSchema {
  const groups = oneofs.filter(({ fields: { length } }) => length > 1);
  return {
    ...described(comments.get(typeName)),
    type: "object",
    properties: Object.fromEntries(
      fields.map((field) => {
        const schema = fieldSchema(field);
        const ofType = schema["description"] as string | undefined;
        const ofGroup = groups.includes(field.oneof!)
          ? `At most one field of the oneof \`${field.oneof!.name}\` is set.`
          : undefined;
        return [
          field.jsonName,
          { ...schema, ...described(comments.get(`${typeName}.${field.name}`), ofType, ofGroup) },
        ];
      }),
    ),
    // At most one field of each oneof.
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
  const one = inner === undefined ? scalarSchema(field.scalar!) : (WELL_KNOWN[inner.typeName] ?? refTo(inner.typeName));
  return field.fieldKind === "list" ? { type: "array", items: one } : one;
}

function enumSchema({ typeName, values }: DescEnum, comments: ProtoComments): JsonSchema {
  const texts = values.map(({ name }) => [name, comments.get(`${typeName}.${name}`)] as const);
  return {
    ...described(comments.get(typeName)),
    type: "string",
    enum: values.map(({ name }) => name),
    // Redoc shows a table of them.
    ...(texts.some(([, text]) => text !== undefined) && { "x-enumDescriptions": Object.fromEntries(texts) }),
  };
}

/** Joins the defined texts to a description. */
export function described(...texts: readonly (string | undefined)[]): JsonSchema {
  const description = texts.filter((text) => text !== undefined).join("\n\n");
  return description === "" ? {} : { description };
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

/** Comments of messages, fields, enums, enum values and methods by full name. */
export type ProtoComments = ReadonlyMap<string, string>;

/** Field numbers of descriptor.proto in the paths of `source_code_info`. */
const PLACES = { message: 4, field: 2, enum: 5, value: 2, service: 6, method: 2 } as const;

/** Reads the comments of a `FileDescriptorSet`: the generated code has none. */
export function readProtoComments(descriptors: Uint8Array): ProtoComments {
  const comments = new Map<string, string>();
  for (const file of createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors)).files) {
    const leading = leadingComments(file);
    const add = (name: string, ...path: readonly number[]): void => {
      const text = leading.get(path.join("."));
      if (text !== undefined) comments.set(name, text);
    };
    file.messages.forEach(({ typeName, fields }, at) => {
      add(typeName, PLACES.message, at);
      fields.forEach(({ name }, index) => add(`${typeName}.${name}`, PLACES.message, at, PLACES.field, index));
    });
    file.enums.forEach(({ typeName, values }, at) => {
      add(typeName, PLACES.enum, at);
      values.forEach(({ name }, index) => add(`${typeName}.${name}`, PLACES.enum, at, PLACES.value, index));
    });
    file.services.forEach(({ typeName, methods }, at) =>
      methods.forEach(({ name }, index) => add(`${typeName}.${name}`, PLACES.service, at, PLACES.method, index)),
    );
  }
  return comments;
}

/** Leading comments by path, each paragraph on one line. */
function leadingComments({ proto }: DescFile): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { path, leadingComments: text } of proto.sourceCodeInfo?.location ?? []) {
    const paragraphs = text.split(/\n\s*\n/).map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim());
    if (text !== "") texts.set(path.join("."), paragraphs.join("\n\n"));
  }
  return texts;
}
