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
import type { Field, Method, Shape, TypePart } from "../../web/docs/reference.ts";

/** What the descriptors say, with their comments. */
export interface GrpcShapes {
  /** Messages and enumerations by their short names, in the order of the files. */
  readonly shapes: ReadonlyMap<string, Shape>;
  readonly methods: readonly Method[];
}

/** Where the parts of a file are in its descriptor, by the numbers of its fields. */
const PLACES = { message: 4, field: 2, enum: 5, value: 2, service: 6, method: 2 } as const;

/** Reads a `FileDescriptorSet`. */
export function readGrpcShapes(descriptors: Uint8Array): GrpcShapes {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  const shapes = new Map<string, Shape>();
  const methods: Method[] = [];
  for (const file of registry.files) {
    const comment = commentsOf(file);
    file.messages.forEach((message, index) => {
      const fields = message.fields.map((field, at) =>
        toField(message, field, comment(PLACES.message, index, PLACES.field, at)),
      );
      shapes.set(message.name, { ...head(message), text: comment(PLACES.message, index), fields });
    });
    file.enums.forEach((type, index) => {
      const fields = type.values.map(({ name }, at) => {
        const text = comment(PLACES.enum, index, PLACES.value, at);
        return { anchor: `${anchorOf(type)}.${name}`, name, type: [], facts: [], text };
      });
      shapes.set(type.name, { ...head(type), text: comment(PLACES.enum, index), fields });
    });
    file.services.forEach((service, index) =>
      service.methods.forEach((method, at) =>
        methods.push({
          anchor: `grpc-${service.name}.${method.name}`,
          path: `${service.typeName}/${method.name}`,
          text: comment(PLACES.service, index, PLACES.method, at),
          input: toPart(method.input),
          output: toPart(method.output),
          isStream: method.methodKind === "server_streaming",
        }),
      ),
    );
  }
  return { shapes, methods };
}

function head(type: DescMessage | DescEnum): Pick<Shape, "anchor" | "name"> {
  return { anchor: anchorOf(type), name: type.name };
}

function anchorOf({ name }: DescMessage | DescEnum): string {
  return `grpc-${name}`;
}

function toPart(type: DescMessage | DescEnum): TypePart {
  return { text: type.name, anchor: anchorOf(type) };
}

function toField(message: DescMessage, field: DescField, comment: string): Field {
  const [, required, text] = /^(Required[.,] ?)?([^]*)$/.exec(comment)!;
  const facts = field.oneof === undefined ? [] : [`one of ${field.oneof.name}`];
  return {
    anchor: `${anchorOf(message)}.${field.name}`,
    name: field.name,
    type: typeOf(field),
    facts,
    text: text!.charAt(0).toUpperCase() + text!.slice(1),
    ...(required !== undefined && { presence: "required" }),
  };
}

function typeOf(field: DescField): TypePart[] {
  const type = field.message ?? field.enum;
  const one: TypePart = type === undefined ? { text: ScalarType[field.scalar!].toLowerCase() } : toPart(type);
  if (field.fieldKind === "map") {
    return [{ text: `map<${ScalarType[field.mapKey].toLowerCase()}, ` }, one, { text: ">" }];
  }
  if (field.fieldKind === "list") return [{ text: "repeated " }, one];
  return field.proto.proto3Optional ? [{ text: "optional " }, one] : [one];
}

/** The comments of a file by the places of what they stand before. Throws for something without one. */
function commentsOf({ proto }: DescFile): (...path: readonly number[]) => string {
  const comments = new Map(
    (proto.sourceCodeInfo?.location ?? []).map(({ path, leadingComments }) => [path.join("."), leadingComments]),
  );
  return (...path) => {
    const text = comments.get(path.join("."));
    if (text === undefined) throw new TypeError(`${proto.name} has no comment at ${path.join(".")}`);
    // Lines are broken where the file's are; paragraphs stay.
    return text
      .split(/\n\s*\n/)
      .map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim())
      .join("\n\n");
  };
}
