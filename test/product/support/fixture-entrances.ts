import { toBinary } from "@bufbuild/protobuf";
import { type Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  type Completion,
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionService,
} from "../../../gen/parley/v1/completion_pb.js";
import { type ListModelsResponse, ModelService } from "../../../gen/parley/v1/model_pb.js";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { toChatCompletion } from "../../../src/formats/openai-chat/response.ts";
import { ChunkWriter } from "../../../src/formats/openai-chat/stream.ts";
import type { NameOf } from "../../../src/formats/format.ts";
import { UNRECOGNIZED_HEADER, writeUnrecognized } from "../../../src/inbound/unknown-fields.ts";
import { ImageJoiner } from "../../../src/inbound/image-pieces.ts";
import { serviceDefinition } from "../../../src/inbound/grpc/definition.ts";
import { readError } from "../../entrances/scenarios/grpc-reply.ts";
import { requestOf } from "./fixture-models.ts";
import type { Json, Scenario } from "./fixtures.ts";
import { normalStream, normalWhole } from "./normal-form.ts";
import { postJson } from "../../support/post-json.ts";

/*
 * A scenario's request through either entrance. Over gRPC the request goes out as the message that the HTTP entrance
 * would make of it, and the typed answer is written the way that the HTTP entrance would write it, so that both can be
 * held against the same files.
 */

/** What an entrance answered, in normal form. */
export interface FixtureReply {
  /** The document, or the list of a stream's events, with an error as the last of them. */
  readonly said: unknown;
  /** HTTP: the number. gRPC: `OK`, or the status and the reason in its ErrorInfo. */
  readonly status: string;
  /** Headers or metadata. Over gRPC `retry-after` is the status's RetryInfo, in whole seconds. */
  readonly facts: Readonly<Record<string, string>>;
}

/** Asks over HTTP. */
export async function askHttp(url: string, key: string, scenario: Scenario): Promise<FixtureReply> {
  const response = await postJson(`${url}/v1/chat/completions`, key, requestOf(scenario));
  const text = await response.text();
  const upstream = upstreamText(scenario);
  return {
    said: "stream" in scenario.expected ? normalStream(text, upstream) : normalWhole(parse(text), upstream),
    status: String(response.status),
    facts: Object.fromEntries(response.headers),
  };
}

/** What the scenario's files say that HTTP answers. */
export function expectedOverHttp({ meta, ...scenario }: Scenario): FixtureReply {
  const status = String(meta.expected_status ?? 200);
  return { said: expectedWords({ meta, ...scenario }), status, facts: meta.expected_headers ?? {} };
}

/** Asks over gRPC. */
export async function askGrpc(client: Client, key: string, scenario: Scenario): Promise<FixtureReply> {
  const { request, unrecognized, nameOf, ...read } = readChatRequest(requestOf(scenario));
  const asked: Asked = { client, metadata: metadataOf(key, unrecognized), request };
  const upstream = upstreamText(scenario);
  if (!read.stream) {
    const { completion, ...ended } = await createOverGrpc(asked);
    const whole = completion && parse(JSON.stringify(toChatCompletion(completion, nameOf)));
    return replyOf(whole && normalWhole(whole, upstream), ended, nameOf);
  }
  const { chunks, ...ended } = await streamOverGrpc(asked);
  const said = normalStream(
    new ChunkWriter({ ...read, nameOf }).write(new ImageJoiner().join(chunks)),
    upstream,
  ) as object[];
  return replyOf(said.length === 0 ? undefined : said, ended, nameOf);
}

/** What the scenario's files say that gRPC answers: the same, but a status with details in place of an error object. */
export function expectedOverGrpc(scenario: Scenario, status: string): FixtureReply {
  const said = expectedWords(scenario);
  const { "retry-after": retryAfter } = scenario.meta.expected_headers ?? {};
  return {
    said: Array.isArray(said) ? said.map(withoutErrorType) : withoutErrorType(said),
    status,
    facts: retryAfter === undefined ? {} : { "retry-after": retryAfter },
  };
}

function expectedWords({ expected, ...scenario }: Scenario): unknown {
  const upstream = upstreamText(scenario);
  return "stream" in expected ? normalStream(expected.stream, upstream) : normalWhole(expected.whole, upstream);
}

/** gRPC has a status where OpenAI's errors have a type. */
function withoutErrorType(event: unknown): unknown {
  const { error } = event as { error?: Json };
  if (error === undefined) return event;
  const { type: _, ...rest } = error;
  return { error: rest };
}

interface Ended {
  readonly metadata: Metadata;
  readonly error: ServiceError | undefined;
}

function replyOf(said: unknown, { metadata, error }: Ended, nameOf: NameOf): FixtureReply {
  const facts: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...metadata.getMap(), ...error?.metadata.getMap() }))
    facts[name] = value.toString();
  if (error === undefined) return { said, status: "OK", facts };
  const { status, code, message, param, retryAfterS } = readError(error);
  if (retryAfterS !== undefined) facts["retry-after"] = String(Math.ceil(retryAfterS));
  const failed = { error: { param: param && nameOf(param), code, message: typeof message } };
  return { said: Array.isArray(said) ? [...(said as unknown[]), failed] : failed, status, facts };
}

/** The models, over gRPC. */
export async function listModels(client: Client, key: string): Promise<ListModelsResponse> {
  const { path, responseDeserialize } = serviceDefinition(ModelService)["list"]!;
  const read = responseDeserialize as (bytes: Buffer) => ListModelsResponse;
  return new Promise((resolve, reject) => {
    const empty = (bytes: Buffer): Buffer => bytes;
    client.makeUnaryRequest(path, empty, read, Buffer.alloc(0), credential(key), (error, models) =>
      error === null ? resolve(models!) : reject(error),
    );
  });
}

const { create, stream: streamed } = serviceDefinition(CompletionService);
const toBytes = (request: CompletionRequest): Buffer => Buffer.from(toBinary(CompletionRequestSchema, request));

function credential(key: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  return metadata;
}

interface Asked {
  readonly client: Client;
  readonly metadata: Metadata;
  readonly request: CompletionRequest;
}

/** The key, and the fields that only the caller over HTTP knows, as a front sends them. */
function metadataOf(key: string, unrecognized: readonly string[]): Metadata {
  const metadata = credential(key);
  const names = writeUnrecognized(unrecognized);
  if (names !== undefined) metadata.set(UNRECOGNIZED_HEADER, names);
  return metadata;
}

function createOverGrpc({
  client,
  metadata: sent,
  request,
}: Asked): Promise<Ended & { completion: Completion | undefined }> {
  const { path, responseDeserialize } = create!;
  return new Promise((resolve) => {
    let metadata = new Metadata();
    client
      .makeUnaryRequest(
        path,
        toBytes,
        responseDeserialize as (bytes: Buffer) => Completion,
        request,
        sent,
        (error, completion) => resolve({ completion, metadata, error: error ?? undefined }),
      )
      .on("metadata", (received: Metadata) => (metadata = received));
  });
}

function streamOverGrpc({ client, metadata: sent, request }: Asked): Promise<Ended & { chunks: CompletionChunk[] }> {
  const { path, responseDeserialize } = streamed!;
  return new Promise((resolve) => {
    const chunks: CompletionChunk[] = [];
    let metadata = new Metadata();
    client
      .makeServerStreamRequest(path, toBytes, responseDeserialize as (bytes: Buffer) => CompletionChunk, request, sent)
      .on("metadata", (received: Metadata) => (metadata = received))
      .on("data", (chunk: CompletionChunk) => chunks.push(chunk))
      .on("error", (error: ServiceError) => resolve({ chunks, metadata, error }))
      .on("end", () => resolve({ chunks, metadata, error: undefined }));
  });
}

function upstreamText({ upstreamResponse }: Pick<Scenario, "upstreamResponse">): string {
  return upstreamResponse?.toString() ?? "";
}

function parse(text: string): Json {
  return JSON.parse(text) as Json;
}
