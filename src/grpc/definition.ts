import {
  type DescFile,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { invalidField, type Failure } from "../core/failure.ts";

/**
 * A request as it reaches a handler. Bytes that are no message do not throw inside grpc-js, which would answer INTERNAL
 * before anybody asked who is calling: they become the failure that the handler throws in its turn.
 */
export type Decoded<T extends Message> = T | Failure;

/** grpc-js's definition of a service, read off its generated descriptor. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

function methodDefinition(method: DescMethod): MethodDefinition<Decoded<Message>, Message> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    originalName: method.localName,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message as Message)),
    requestDeserialize: (bytes) => {
      try {
        return fromBinary(method.input, bytes);
      } catch {
        return invalidField("request", `is not a ${method.input.typeName} message`);
      }
    },
    responseSerialize: (message) => {
      const bytes = toBinary(method.output, message);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

/** Server reflection for these services, so that stock tools need no files of ours; `details` are what errors carry. */
export function reflectionOf(services: readonly DescService[], details: readonly DescFile[]): ReflectionService {
  const files = new Map<string, Buffer>();
  const add = (file: DescFile): void => {
    if (files.has(file.name)) return;
    for (const dependency of file.dependencies) add(dependency);
    files.set(file.name, Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)));
  };
  for (const service of services) add(service.file);
  for (const file of details) add(file);
  // Of a proto-loader package, the reflection service reads nothing but these serialised descriptors.
  const definition = { all: { format: "", type: {}, fileDescriptorProtos: [...files.values()] } };
  return new ReflectionService(definition as ConstructorParameters<typeof ReflectionService>[0], {
    services: services.map((service) => service.typeName),
  });
}
