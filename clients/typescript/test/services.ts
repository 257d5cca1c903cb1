import { create, createFileRegistry, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  type FieldDescriptorProtoSchema,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";

/** `grpc.health.v1.Health.Check`, as far as the tests need it. */
export const checkHealth = methodOf({
  name: "health.proto",
  package: "grpc.health.v1",
  messageType: [
    { name: "HealthCheckRequest", field: [field("service", 1, { type: Type.STRING })] },
    { name: "HealthCheckResponse", field: [field("status", 1, { type: Type.INT32 })] },
  ],
  service: [
    {
      name: "Health",
      method: [
        {
          name: "Check",
          inputType: ".grpc.health.v1.HealthCheckRequest",
          outputType: ".grpc.health.v1.HealthCheckResponse",
        },
      ],
    },
  ],
});

/** `grpc.reflection.v1.ServerReflection.ServerReflectionInfo`, as far as the tests need it. */
export const reflect = methodOf({
  name: "reflection.proto",
  package: "grpc.reflection.v1",
  messageType: [
    { name: "ServerReflectionRequest", field: [field("list_services", 7, { type: Type.STRING })] },
    {
      name: "ServerReflectionResponse",
      field: [
        field("list_services_response", 6, {
          type: Type.MESSAGE,
          typeName: ".grpc.reflection.v1.ListServiceResponse",
        }),
      ],
    },
    {
      name: "ListServiceResponse",
      field: [
        field("service", 1, {
          type: Type.MESSAGE,
          typeName: ".grpc.reflection.v1.ServiceResponse",
          label: Label.REPEATED,
        }),
      ],
    },
    { name: "ServiceResponse", field: [field("name", 1, { type: Type.STRING })] },
  ],
  service: [
    {
      name: "ServerReflection",
      method: [
        {
          name: "ServerReflectionInfo",
          inputType: ".grpc.reflection.v1.ServerReflectionRequest",
          outputType: ".grpc.reflection.v1.ServerReflectionResponse",
          clientStreaming: true,
          serverStreaming: true,
        },
      ],
    },
  ],
});

type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;

function field(name: string, number: number, more: FieldInit): FieldInit {
  return { name, number, label: Label.OPTIONAL, ...more };
}

/** The only method of a file's only service. */
function methodOf(file: MessageInitShape<typeof FileDescriptorProtoSchema>): DescMethod {
  const proto = create(FileDescriptorProtoSchema, { syntax: "proto3", ...file });
  const registry = createFileRegistry(proto, () => undefined);
  const service = [...registry].find((each) => each.kind === "service");
  return service!.methods[0]!;
}
