import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { Failure, invalidField } from "../../core/failure.ts";
import { requireDecodable } from "../message-size.ts";
import { encode } from "./encoding.ts";

/**
 * A request as it reaches a handler: bytes, which the handler decodes when it knows who is calling, and the library would
 * answer with an internal error if it could not. `read` throws `invalid_request` when they are no such message, and
 * `request_too_large` when decoding them would take too much.
 */
export interface Encoded<T extends Message> {
  /** On the wire. */
  readonly bytes: number;
  readonly read: () => T;
}

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
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message.read())),
    requestDeserialize: (bytes) => ({ bytes: bytes.length, read: () => decode(method.input, bytes) }),
    responseSerialize: (message) => encode(method.output, message),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function decode<D extends DescMessage>(desc: D, bytes: Uint8Array): MessageShape<D> {
  try {
    requireDecodable(desc, bytes);
    return fromBinary(desc, bytes);
  } catch (reason) {
    if (reason instanceof Failure) throw reason;
    throw invalidField("request", `is not a ${desc.typeName} message`);
  }
}
