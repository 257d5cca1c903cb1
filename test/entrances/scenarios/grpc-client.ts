import { fromBinary } from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { type CompletionChunk, CompletionSchema, CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingsSchema, EmbeddingService } from "../../../gen/parley/v1/embedding_pb.js";
import type { Mode } from "../../../src/core/router.ts";
import { serviceDefinition } from "../../../src/inbound/grpc/definition.ts";
import { readChunks, readCompletion, readEmbeddings, readError, type Said } from "./grpc-reply.ts";
import type { Reply, RunningCall } from "./reply.ts";
import type { Service } from "./run.ts";

/** One call of `CompletionService`: `Create` for a whole answer, `Stream` for a streamed one; or `Create` of `EmbeddingService`. */
export interface GrpcCall {
  readonly client: Client;
  /** Overrides the path of the method. */
  readonly path?: string | undefined;
  /** Default: completions. */
  readonly service?: Service;
  readonly mode: Mode;
  /** The request message, or other bytes. */
  readonly bytes: Buffer;
  readonly metadata: Readonly<Record<string, string>>;
  readonly deadlineMs: number | undefined;
}

const { create, stream } = serviceDefinition(CompletionService);
const { create: embed } = serviceDefinition(EmbeddingService);

const UNARY: Readonly<Record<Service, { readonly path: string; readonly read: (bytes: Buffer) => Said }>> = {
  completions: { path: create!.path, read: (bytes) => readCompletion(fromBinary(CompletionSchema, bytes)) },
  embeddings: { path: embed!.path, read: (bytes) => readEmbeddings(fromBinary(EmbeddingsSchema, bytes)) },
};

const asItIs = (bytes: Buffer): Buffer => bytes;

/** Calls the gRPC entrance on the client's shared connection. */
export function callGrpc({ client, path, service, mode, bytes, metadata, deadlineMs }: GrpcCall): RunningCall {
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
      const unary = UNARY[service ?? "completions"];
      call = client.makeUnaryRequest<Buffer, Said>(
        path ?? unary.path,
        asItIs,
        unary.read,
        bytes,
        sent,
        options,
        (error, said) => (error === null ? resolve({ ...said!, facts, complete: true }) : fail(error)),
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
