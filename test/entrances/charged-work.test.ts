import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CompletionRequestSchema, CompletionSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { EmbeddingsSchema, EmbeddingService } from "../../gen/parley/v1/embedding_pb.js";
import { ModelService } from "../../gen/parley/v1/model_pb.js";
import type { Slot } from "../../src/admission/slot.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { createCompletions } from "../../src/core/completions.ts";
import { createEmbedder } from "../../src/core/embeddings.ts";
import { createModels } from "../../src/core/models.ts";
import type { Router } from "../../src/core/router.ts";
import type { GrpcServer } from "../../src/inbound/grpc/server.ts";
import { type HttpServer, startHttpServer } from "../../src/inbound/http/server.ts";
import { Calls } from "../../src/inbound/calls.ts";
import type { EdgeServices } from "../../src/inbound/services.ts";
import { roomyAdmission } from "../support/admission.ts";
import { createWorld } from "../router/routed.ts";
import { FACTS, memoryLedger, notingLimiter, somebody, seal } from "../support/core-ports.ts";
import { idleServices, startGrpc } from "../support/idle-services.ts";

const MIB = 1024 * 1024;
const CREATE = `/${CompletionService.typeName}/Create`;
const STREAM = `/${CompletionService.typeName}/Stream`;
const CREATE_EMBEDDINGS = `/${EmbeddingService.typeName}/Create`;
const LIST = `/${ModelService.typeName}/List`;
const CHECK_MS = 1_000_000;
/** Vectors that are encoded in three parts. */
const VECTORS = [1, 2, 3].map(() => ({ values: Array<number>(50_000).fill(0.5) }));

const asked = (): never => {
  throw new Error("not implemented in this test");
};

let slots: Slot[];
/** Pieces of work that were charged. */
let charged: number;
/** Whether completions and embeddings are answered. Otherwise their models do not exist. */
let isAnswered: boolean;
let http: HttpServer;
let grpc: GrpcServer;
beforeEach(async () => {
  slots = [];
  charged = 0;
  isAnswered = false;
  let checkedMs = 0;
  // No timer: debts are not paid.
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic() + checkedMs,
    after: () => () => undefined,
  };
  const [model] = createWorld({ scripts: { a: [] } }).router.list();
  const listed = [
    {
      ...model!,
      // Read once where its message is made.
      get description() {
        checkedMs += CHECK_MS;
        return "";
      },
    },
  ];
  const router: Router = {
    find() {
      checkedMs += CHECK_MS;
      return undefined;
    },
    list: () => listed,
    plan: asked,
    explain: asked,
    planEmbeddings: asked,
  };
  const ports = {
    router,
    permit: () => undefined,
    limiter: notingLimiter().limiter,
    ledger: memoryLedger().ledger,
    recorder: { record: () => undefined },
    clock: systemClock,
  };
  const completions = createCompletions({ ...ports, seal });
  const admission = roomyAdmission(clock);
  const enter = admission.enter.bind(admission);
  admission.enter = (...args) => {
    const slot = enter(...args);
    if (slot instanceof Promise) return slot;
    slots.push(slot);
    const worked = slot.worked.bind(slot);
    slot.worked = (ms) => {
      charged += 1;
      worked(ms);
    };
    return slot;
  };
  const embedder = createEmbedder({ ...ports, settling: completions.settling });
  const services: Partial<EdgeServices> = {
    completions: {
      ...completions,
      create: async (...args) => (isAnswered ? create(CompletionSchema, { id: "c" }) : completions.create(...args)),
    },
    embedder: {
      create: async (...args) =>
        isAnswered ? create(EmbeddingsSchema, { id: "e", embeddings: VECTORS }) : embedder.create(...args),
    },
    models: createModels(router, ports.limiter),
    authenticate: async () => somebody,
    limitsOf: () => FACTS,
    calls: new Calls(systemClock),
    admission,
  };
  http = await startHttpServer(idleServices(services), { host: "127.0.0.1", port: 0, corsOrigins: [] });
  grpc = await startGrpc(services, { maxReceiveBytes: MIB, maxSendBytes: MIB });
});
afterEach(() => {
  http.close();
  grpc.close();
});

const ASKED = JSON.stringify({ model: "a", messages: [{ role: "user", content: "hi" }], input: "hi", max_tokens: 1 });

async function post(path: string, body = ASKED): Promise<unknown> {
  const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
  return (await fetch(`http://127.0.0.1:${http.port}${path}`, { method: "POST", headers, body })).text();
}

async function get(path: string): Promise<unknown> {
  return (await fetch(`http://127.0.0.1:${http.port}${path}`)).text();
}

async function callGrpc(path: string): Promise<unknown> {
  const client = new Client(`127.0.0.1:${grpc.port}`, credentials.createInsecure());
  const request = path === LIST ? {} : { model: "a" };
  const body = Buffer.from(toBinary(CompletionRequestSchema, create(CompletionRequestSchema, request)));
  const bytes = (each: Buffer): Buffer => each;
  try {
    return await new Promise((resolve) => {
      if (path === STREAM)
        client
          .makeServerStreamRequest(path, bytes, bytes, body)
          .on("data", () => undefined)
          .on("error", resolve)
          .on("end", () => resolve(null));
      else client.makeUnaryRequest(path, bytes, bytes, body, resolve);
    });
  } finally {
    client.close();
  }
}

it.each([
  ["HTTP", "/v1/chat/completions", post],
  ["HTTP", "/v1/messages", post],
  ["HTTP", "/v1/messages/count_tokens", post],
  ["HTTP", "/v1/embeddings", post],
  ["Connect", CREATE, (path: string) => post(path, '{"model":"a"}')],
  ["Connect", CREATE_EMBEDDINGS, (path: string) => post(path, '{"model":"a"}')],
  ["HTTP", "/v1/models", get],
  ["HTTP", "/v1beta/models?pageSize=1", get],
  ["Connect", LIST, (path: string) => post(path, "{}")],
  ["gRPC", LIST, callGrpc],
  ["gRPC", CREATE, callGrpc],
  ["gRPC", STREAM, callGrpc],
  ["gRPC", CREATE_EMBEDDINGS, callGrpc],
])("the checks of a request over %s are charged to its key: %s", async (_, path, send) => {
  await send(path);
  expect(slots).toHaveLength(1);
  const { debtMs } = slots[0]!.holders.key;
  expect(debtMs).toBeGreaterThanOrEqual(CHECK_MS);
  expect(debtMs).toBeLessThan(CHECK_MS * 1.5);
});

it.each([
  // The messages, and the text with the body.
  ["HTTP", 2, () => get("/v1/models")],
  // The body, the messages, and their encoding.
  ["Connect", 3, () => post(LIST, "{}")],
  ["gRPC", 3, () => callGrpc(LIST)],
])("each part of the work for a list of models over %s is charged", async (_, parts, send) => {
  await send();
  expect(charged).toBe(parts);
});

it.each([
  // The body, its search for unknown fields, and the encoding of the answer.
  ["Connect", CREATE, 3, () => post(CREATE, '{"model":"a"}')],
  ["gRPC", CREATE, 3, () => callGrpc(CREATE)],
  // The body, its search for unknown fields, the vectors, and over Connect the rest.
  ["Connect", CREATE_EMBEDDINGS, 6, () => post(CREATE_EMBEDDINGS, '{"model":"a"}')],
  ["gRPC", CREATE_EMBEDDINGS, 5, () => callGrpc(CREATE_EMBEDDINGS)],
])(
  "the search for unknown fields and the encoding of an answer over %s are charged, vectors in parts: %s",
  async (_, _path, parts, send) => {
    isAnswered = true;
    await send();
    expect(charged).toBe(parts);
  },
);
