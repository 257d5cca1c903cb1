import { create, createFileRegistry, type DescMessage } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

export type AttributesJson = readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];

export function valuesOf(attributes: AttributesJson = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [[kind, given] = []] = Object.entries(value);
      return [key, kind === "intValue" ? Number(given) : given];
    }),
  );
}

/** Messages with attributes, of `common/v1/common.proto` and `resource/v1/resource.proto` (opentelemetry-proto 1.9.0). */
export const COMMON = {
  Resource: { attributes: [1, ["KeyValue"]] },
  KeyValue: { key: [1, Type.STRING], value: [2, "AnyValue"] },
  AnyValue: {
    stringValue: [1, Type.STRING],
    boolValue: [2, Type.BOOL],
    intValue: [3, Type.INT64],
    doubleValue: [4, Type.DOUBLE],
  },
} as const satisfies Messages;

type Messages = Readonly<Record<string, Readonly<Record<string, Field>>>>;
type Field = readonly [number: number, type: Type | string | readonly [Type | string]];

/** Returns the descriptor of the first of these messages. A field in a list is repeated. */
export function describe(messages: Messages): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "otlp.proto",
    syntax: "proto2",
    messageType: Object.entries(messages).map(([name, fields]) => ({
      name,
      field: Object.entries(fields).map(([jsonName, [number, given]]) => {
        const [type] = typeof given === "object" ? given : [given];
        return {
          name: jsonName,
          jsonName,
          number,
          label: typeof given === "object" ? Label.REPEATED : Label.OPTIONAL,
          // Repeated numbers need no packed option: the decoder reads both encodings.
          ...(typeof type === "number" ? { type } : { type: Type.MESSAGE, typeName: `.${type}` }),
        };
      }),
    })),
  });
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage(Object.keys(messages)[0]!)!;
}
