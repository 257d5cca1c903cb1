import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { expect, it, onTestFinished } from "vitest";
import { type CompletionChunk, CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { serviceDefinition } from "../../src/inbound/grpc/definition.ts";
import { startProduct } from "../support/product.ts";
import { beginStream, END_EVENTS, localModel, startUpstream, textEvent } from "./support/upstream.ts";

const KEEPALIVE_MS = 500;
const STREAM_MS = 6 * KEEPALIVE_MS;

it("a client whose keepalive cannot follow GOAWAY, as Node's cannot, finishes its streams while the server drains", async () => {
  const upstream = await startUpstream(({ response }) => {
    beginStream(response);
    response.write(textEvent("Once"));
    setTimeout(() => response.end(textEvent(" upon") + END_EVENTS), STREAM_MS);
  });
  onTestFinished(() => upstream.close());
  const product = await startProduct({ config: localModel(upstream.url) });
  onTestFinished(() => product.stop());
  const client = new Client(`127.0.0.1:${product.grpcPort}`, credentials.createInsecure(), {
    "grpc.keepalive_time_ms": KEEPALIVE_MS,
    "grpc.keepalive_timeout_ms": 5_000,
  });
  onTestFinished(() => client.close());
  const { path, requestSerialize, responseDeserialize } = serviceDefinition(CompletionService)["stream"]!;
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${product.firstKey}`);
  const message = create(CompletionRequestSchema, {
    model: "local/test",
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "hi" } }] }],
  });
  const request = { bytes: 0, read: () => message };
  const stream = () => {
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata);
    const chunks: CompletionChunk[] = [];
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<number>();
    call.on("data", (chunk: CompletionChunk) => {
      chunks.push(chunk);
      begun.resolve();
    });
    call.on("end", () => ended.resolve(status.OK));
    call.on("error", ({ code }: ServiceError) => ended.resolve(code));
    return { begun: begun.promise, ended: ended.promise };
  };
  const streams = [stream(), stream(), stream()];
  await Promise.all(streams.map(({ begun }) => begun));
  product.signal("SIGTERM");
  expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual([status.OK, status.OK, status.OK]);
  expect(await product.ending).toEqual({ code: 0, signal: null });
});
