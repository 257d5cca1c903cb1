import {
  type CallOptions,
  type Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { type Completion, type CompletionChunk, CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import type { Mode } from "../../../src/core/router.ts";
import { serviceDefinition } from "../../../src/inbound/grpc/definition.ts";
import { readChunks, readCompletion, readError } from "./grpc-reply.ts";
import type { Reply, RunningCall } from "./reply.ts";

/** One call of `CompletionService`: `Create` for a whole answer, `Stream` for a streamed one. */
export interface GrpcCall {
  readonly client: Client;
  /** Overrides the method of the mode. */
  readonly path?: string | undefined;
  readonly mode: Mode;
  /** The request message, or other bytes. */
  readonly bytes: Buffer;
  readonly metadata: Readonly<Record<string, string>>;
  readonly deadlineMs: number | undefined;
}

const { create, stream } = serviceDefinition(CompletionService);
const asItIs = (bytes: Buffer): Buffer => bytes;

/** Calls the gRPC entrance on the client's shared connection. */
export function callGrpc({ client, path, mode, bytes, metadata, deadlineMs }: GrpcCall): RunningCall {
  const sent = new Metadata();
  for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
  const options: CallOptions = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  const facts: Record<string, string> = {};
  const chunks: CompletionChunk[] = [];
  let call: ClientUnaryCall | ClientReadableStream<CompletionChunk>;
  const reply = new Promise<Reply>((resolve) => {
    const fail = (error: ServiceError): void => {
      Object.assign(facts, error.metadata.getMap());
      resolve({ ...readChunks(chunks), facts, complete: false, failure: readError(error) });
    };
    if (mode === "whole") {
      call = client.makeUnaryRequest<Buffer, Completion>(
        path ?? create!.path,
        asItIs,
        create!.responseDeserialize as (bytes: Buffer) => Completion,
        bytes,
        sent,
        options,
        (error, completion) =>
          error === null ? resolve({ ...readCompletion(completion!), facts, complete: true }) : fail(error),
      );
    } else {
      const reading = client.makeServerStreamRequest<Buffer, CompletionChunk>(
        path ?? stream!.path,
        asItIs,
        stream!.responseDeserialize as (bytes: Buffer) => CompletionChunk,
        bytes,
        sent,
        options,
      );
      reading.on("data", (chunk: CompletionChunk) => chunks.push(chunk));
      reading.on("error", fail);
      reading.on("end", () => resolve({ ...readChunks(chunks), facts, complete: true }));
      call = reading;
    }
    call.on("metadata", (received: Metadata) => Object.assign(facts, received.getMap()));
  });
  return {
    reply,
    begun: () => chunks.length > 0,
    closedByGateway: () => false,
    leave: () => call.cancel(),
  };
}
