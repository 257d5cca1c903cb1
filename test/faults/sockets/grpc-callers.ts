import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type CallOptions, type Client, Metadata, type ServiceError, status as Status } from "@grpc/grpc-js";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import {
  type Completion,
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionService,
  FinishReason,
} from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { serviceDefinition } from "../../../src/inbound/grpc/definition.ts";
import { readChunks, readCompletion, readError, type Said } from "../../entrances/scenarios/grpc-reply.ts";
import { promptOf } from "../../support/faults/fault-server.ts";
import type { CallerPlan } from "./caller-plan.ts";
import { type Asking, requestIdOf } from "./http-callers.ts";
import { left, type Reply } from "./reply.ts";

function requestOf({ request, model, fallbacks }: CallerPlan): CompletionRequest {
  return create(CompletionRequestSchema, {
    model,
    fallbackModels: [...fallbacks],
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: promptOf(request) } }] }],
  });
}

const { create: createMethod, stream: streamMethod } = serviceDefinition(CompletionService);
const asItIs = (bytes: Buffer): Buffer => bytes;

/** Calls with grpc-js. */
export async function askGrpc(client: Client, key: string, { plan, signal, took }: Asking): Promise<Reply> {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  metadata.set("x-request-id", requestIdOf(plan.request));
  const options: CallOptions = plan.deadlineMs === undefined ? {} : { deadline: Date.now() + plan.deadlineMs };
  const bytes = Buffer.from(toBinary(CompletionRequestSchema, requestOf(plan)));
  const chunks: CompletionChunk[] = [];
  try {
    if (!plan.streamed) {
      const completion = await new Promise<Completion>((resolve, reject) => {
        const call = client.makeUnaryRequest<Buffer, Completion>(
          createMethod!.path,
          asItIs,
          createMethod!.responseDeserialize as (bytes: Buffer) => Completion,
          bytes,
          metadata,
          options,
          (error, value) => (error === null ? resolve(value!) : reject(error)),
        );
        signal.addEventListener("abort", () => call.cancel(), { once: true });
      });
      return readWhole(completion);
    }
    const call = client.makeServerStreamRequest<Buffer, CompletionChunk>(
      streamMethod!.path,
      asItIs,
      streamMethod!.responseDeserialize as (bytes: Buffer) => CompletionChunk,
      bytes,
      metadata,
      options,
    );
    signal.addEventListener("abort", () => call.cancel(), { once: true });
    for await (const chunk of call as AsyncIterable<CompletionChunk>) {
      chunks.push(chunk);
      if (chunk.event.case === "partDelta") await took({ pieces: 1 });
    }
    return readStream(chunks);
  } catch (error) {
    const { text } = readChunks(chunks);
    const { code, details, metadata: trailers } = error as ServiceError;
    if (signal.aborted) return left(text);
    if (trailers === undefined) throw error;
    const reason = readError(error as ServiceError).status.split(" ")[1];
    // The client's own deadline also ends a call, without details.
    if (plan.deadlineMs !== undefined && code === Status.DEADLINE_EXCEEDED && reason === "without") return left(text);
    return { end: "failed", text, failure: { grpc: code, reason, message: details }, breaches: [] };
  }
}

/** Calls with Connect's client, over gRPC or the Connect protocol. */
export async function askConnect(transport: Transport, key: string, { plan, signal, took }: Asking): Promise<Reply> {
  const client = createClient(CompletionService, transport);
  const headers = { authorization: `Bearer ${key}`, "x-request-id": requestIdOf(plan.request) };
  const options = { headers, signal, ...(plan.deadlineMs !== undefined && { timeoutMs: plan.deadlineMs }) };
  const chunks: CompletionChunk[] = [];
  try {
    if (!plan.streamed) return readWhole(await client.create(requestOf(plan), options));
    for await (const chunk of client.stream(requestOf(plan), options)) {
      chunks.push(chunk);
      if (chunk.event.case === "partDelta") await took({ pieces: 1 });
    }
    return readStream(chunks);
  } catch (error) {
    const { text } = readChunks(chunks);
    if (signal.aborted) return left(text);
    if (!(error instanceof ConnectError)) throw error;
    const reason = error.findDetails(ErrorInfoSchema)[0]?.reason;
    if (plan.deadlineMs !== undefined && error.code === Code.DeadlineExceeded && reason === undefined)
      return left(text);
    return { end: "failed", text, failure: { grpc: error.code, reason, message: error.rawMessage }, breaches: [] };
  }
}

function readWhole(completion: Completion): Reply {
  const { choices } = completion;
  const finished = choices.length === 1 && choices[0]!.finishReason === FinishReason.STOP;
  return { ...toReply(readCompletion(completion)), breaches: finished ? [] : ["an answer without its one finish"] };
}

/** Checks the grammar: one `start`, parts in sequence, one `choiceFinish`, at most one `usage`, one `report`. */
const GRAMMAR = /^start( partStart( partDelta)* partFinish)*( choiceFinish)( usage)?( report)$/;

function readStream(chunks: readonly CompletionChunk[]): Reply {
  const order = chunks.map(({ event }) => event.case).join(" ");
  return { ...toReply(readChunks(chunks)), breaches: GRAMMAR.test(order) ? [] : [`chunks in the order ${order}`] };
}

function toReply({ text, model, usage }: Said): Omit<Reply, "breaches"> {
  const [prompt = 0, completion = 0] = usage?.split("+").map(Number) ?? [];
  return { end: "complete", text, model, usage: usage === undefined ? undefined : { prompt, completion } };
}
