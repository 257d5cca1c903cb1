import { create, toBinary } from "@bufbuild/protobuf";
import { credentials, makeClientConstructor, Metadata } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionSchema,
  CompletionService,
} from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { type GrpcServer } from "../../src/inbound/grpc/server.ts";
import { serviceDefinition } from "../../src/inbound/grpc/definition.ts";
import { type HttpServer, startHttpServer } from "../../src/inbound/http/server.ts";
import type { EdgeServices } from "../../src/inbound/services.ts";
import { FACTS, somebody } from "../support/core-ports.ts";
import { idleServices, startGrpc } from "../support/idle-services.ts";

const MIB = 1024 * 1024;
const HEADERS = { authorization: "Bearer sk_x", "content-type": "application/json" };

let server: HttpServer;
let grpc: GrpcServer;
let received: CompletionRequest[];
beforeEach(async () => {
  received = [];
  const own: Partial<EdgeServices> = {
    authenticate: async () => somebody,
    limitsOf: () => FACTS,
    completions: {
      create: async (request, call) => {
        call.admitted(FACTS);
        received.push(request);
        return create(CompletionSchema, { model: "a" });
      },
    } as EdgeServices["completions"],
  };
  server = await startHttpServer(idleServices(own), { host: "127.0.0.1", port: 0, corsOrigins: [] });
  grpc = await startGrpc(own);
});
afterEach(() => {
  server.close();
  grpc.close();
});

/** Sizes of the buffers that are released, whose memory stays. */
const released = (): number[] => {
  const sizes: number[] = [];
  vi.spyOn(ArrayBuffer.prototype, "transfer").mockImplementation(function (this: ArrayBuffer) {
    sizes.push(this.byteLength);
    return new ArrayBuffer(0);
  });
  return sizes;
};

const post = (
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  type = HEADERS["content-type"],
): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, {
    method: "POST",
    headers: { ...HEADERS, "content-type": type },
    body,
  });

const CONNECT = "/parley.v1.CompletionService/Create";

it("the memory of a large JSON body is released once it is parsed, also one that is no JSON; that of a form is kept", async () => {
  const sizes = released();
  const json = JSON.stringify({ model: "a", messages: [{ role: "user", content: "x".repeat(MIB) }] });
  await post("/v1/chat/completions", json);
  await post("/v1/chat/completions", `${json}}`);
  const message = JSON.stringify({ model: "a", messages: [{ role: "ROLE_USER", parts: [{ text: "x".repeat(MIB) }] }] });
  await post(CONNECT, message);
  expect(sizes.splice(0)).toEqual([json.length, json.length + 1, message.length]);
  const form = new FormData();
  form.set("model", "a");
  form.set("prompt", "x");
  form.set("image", new Blob([Buffer.alloc(MIB)], { type: "image/png" }), "a.png");
  await fetch(`http://127.0.0.1:${server.port}/v1/images/edits`, {
    method: "POST",
    headers: { authorization: HEADERS.authorization },
    body: form,
  });
  expect(sizes).toEqual([]);
});

const TEXT = "x".repeat(MIB);
const PICTURE = Buffer.alloc(100_000, 7);

/** A message with a text of a MiB, and a picture with a tenth of it. */
const MESSAGE = create(CompletionRequestSchema, {
  model: "a",
  messages: [
    {
      role: Role.USER,
      parts: [
        { kind: { case: "text", value: TEXT } },
        { kind: { case: "image", value: { mediaType: "image/png", source: { case: "data", value: PICTURE } } } },
      ],
    },
  ],
});

const contentOf = ([request]: readonly CompletionRequest[]): unknown[] =>
  request!.messages[0]!.parts.map(({ kind }) =>
    kind.case === "image" ? Buffer.from(kind.value.source.value as Uint8Array) : kind.value,
  );

it("the memory of a large binary message is released once it is decoded, over Connect, gRPC-Web and gRPC, with its content intact", async () => {
  const bytes = toBinary(CompletionRequestSchema, MESSAGE);
  const envelope = Buffer.alloc(5);
  envelope.writeUInt32BE(bytes.length, 1);
  expect((await post(CONNECT, bytes, "application/proto")).status).toBe(200);
  expect(contentOf(received.splice(0))).toEqual([TEXT, PICTURE]);
  await post(CONNECT, Buffer.concat([envelope, bytes]), "application/grpc-web+proto");
  expect(contentOf(received.splice(0))).toEqual([TEXT, PICTURE]);
  const Client = makeClientConstructor(serviceDefinition(CompletionService), "completions");
  const client = new Client(`127.0.0.1:${grpc.port}`, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", "Bearer sk_x");
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      client["create"]!({ read: () => MESSAGE }, metadata, (error: Error | null) =>
        error === null ? resolve() : reject(error),
      );
    });
  await call();
  expect(contentOf(received.splice(0))).toEqual([TEXT, PICTURE]);
  const sizes = released();
  await post(CONNECT, bytes, "application/proto");
  await post(CONNECT, Buffer.concat([envelope, bytes]), "application/grpc-web+proto");
  // As it arrived, and the library's copy.
  await call();
  client.close();
  const length = bytes.length;
  expect(sizes).toEqual([length, length + 5, length + 5, length + 5]);
});

it("the memory of a large binary message that cannot be decoded is released", async () => {
  const sizes = released();
  await post(CONNECT, Buffer.alloc(MIB, 0xff), "application/proto");
  expect(sizes).toEqual([MIB]);
});
