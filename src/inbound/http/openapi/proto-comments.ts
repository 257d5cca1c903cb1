import { createFileRegistry, type DescFile, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** What the `.proto` files say of messages, fields, enumerations, their values and methods, by full names. */
export type ProtoComments = ReadonlyMap<string, string>;

/** Field numbers of descriptor.proto, which the paths of `source_code_info` consist of. */
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

/** Comments by the path of what they stand before, each paragraph in one line. */
function leadingComments({ proto }: DescFile): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { path, leadingComments: text } of proto.sourceCodeInfo?.location ?? []) {
    const paragraphs = text.split(/\n\s*\n/).map((paragraph) => paragraph.replaceAll(/\s+/g, " ").trim());
    if (text !== "") texts.set(path.join("."), paragraphs.join("\n\n"));
  }
  return texts;
}
