import {
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import { Failure, invalidField } from "../core/failure.ts";
import { hasTooManyFields, MAX_MESSAGE_FIELDS } from "../edge/message-size.ts";

/**
 * A request as it reaches a handler: bytes, which the handler decodes when it knows who is calling. Throws
 * `invalid_request` when they are no such message, and `request_too_large` when decoding them would take too much.
 */
export type Encoded<T extends Message> = () => T;

/** grpc-js's definition of a service, read off its generated descriptor. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, methodDefinition(method)]));
}

function methodDefinition(method: DescMethod): MethodDefinition<Encoded<Message>, Message> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    originalName: method.localName,
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message())),
    requestDeserialize: (bytes) => () => decode(method.input, bytes),
    responseSerialize: (message) => {
      const bytes = toBinary(method.output, message);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function decode<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    if (!hasTooManyFields(desc, bytes)) return fromBinary(desc, bytes);
  } catch {
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
  throw new Failure("request_too_large", `The request has more than ${MAX_MESSAGE_FIELDS} fields.`);
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
