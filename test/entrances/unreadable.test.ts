import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { systemClock } from "../../src/core/clock.ts";
import { Calls } from "../../src/inbound/calls.ts";
import type { EdgeServices, Refusal } from "../../src/inbound/services.ts";
import { type HttpServer, startHttpServer } from "../../src/inbound/http/server.ts";
import type { GrpcServer } from "../../src/inbound/grpc/server.ts";
import { FACTS, somebody } from "../support/core-ports.ts";
import { idleServices, startGrpc } from "../support/idle-services.ts";

const MIB = 1024 * 1024;
const CREATE = `/${CompletionService.typeName}/Create`;

let refusals: Refusal[];
let http: HttpServer;
let grpc: GrpcServer;
beforeEach(async () => {
  refusals = [];
  const calls = new Calls(systemClock);
  const services: Partial<EdgeServices> = {
    authenticate: async () => somebody,
    limitsOf: () => FACTS,
    calls,
    refused: (refusal) => void refusals.push(refusal),
  };
  http = await startHttpServer(idleServices(services), { host: "127.0.0.1", port: 0, corsOrigins: [] });
  grpc = await startGrpc(services, { maxReceiveBytes: MIB, maxSendBytes: MIB });
});
afterEach(() => {
  http.close();
  grpc.close();
});

async function post(path: string, type: string, body: string): Promise<number> {
  const headers = { "content-type": type, "x-request-id": "req_unreadable" };
  return (await fetch(`http://127.0.0.1:${http.port}${path}`, { method: "POST", headers, body })).status;
}

async function callGrpc(path: string, body: Buffer): Promise<ServiceError | null> {
  const client = new Client(`127.0.0.1:${grpc.port}`, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("x-request-id", "req_unreadable");
  try {
    const bytes = (each: Buffer): Buffer => each;
    return await new Promise((resolve) => client.makeUnaryRequest(path, bytes, bytes, body, metadata, resolve));
  } finally {
    client.close();
  }
}

describe("a completion request that cannot be parsed", () => {
  it.each([
    ["http", "/v1/chat/completions", () => post("/v1/chat/completions", "application/json", "{")],
    ["connect", CREATE, () => post(CREATE, "application/json", "{")],
    ["connect", CREATE, () => post(CREATE, "application/json", `{"temperature":"hot"}`)],
    ["connect", CREATE, () => post(CREATE, "application/proto", "\x0f")],
    ["connect", CREATE, () => post(CREATE, "application/connect+proto", "\0\0\0\0\x01\x0f")],
    ["connect", CREATE, () => post(CREATE, "text/plain", "{}")],
    ["grpc", CREATE, () => callGrpc(CREATE, Buffer.from([0x0f]))],
  ])("over %s is recorded once, with its principal", async (entrance, target, send) => {
    await send();
    expect(refusals).toMatchObject([{ entrance, target, requestId: "req_unreadable", principal: somebody }]);
    expect(refusals[0]!.failure.code).toBe("invalid_request");
  });

  it.each([
    ["application/json", `{"temperature":"hot"}`, "temperature: has a value of another type"],
    ["application/json", `{"messages":[{"role":"nobody"}]}`, "is not a parley.v1.CompletionRequest message"],
    ["application/json", `{"unheard_of":1}`, "unheard_of: is not a field"],
    ["application/proto", "\x0f", "is not a parley.v1.CompletionRequest message"],
    ["text/plain", "{}", "must be application/json or application/proto"],
  ])("over Connect is refused with the gateway's own message: %s %s", async (type, body, said) => {
    const headers = { "content-type": type };
    const reply = await fetch(`http://127.0.0.1:${http.port}${CREATE}`, { method: "POST", headers, body });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(said),
      details: [
        { type: "google.rpc.ErrorInfo" },
        ...(type.startsWith("app") ? [{ type: "google.rpc.BadRequest" }] : []),
      ],
    });
  });

  it("is not recorded for other methods", async () => {
    const path = "/parley.v1.ModelService/Get";
    expect(await post(path, "application/json", "{")).toBe(400);
    await callGrpc(path, Buffer.from([0x0f]));
    expect(refusals.map(({ target, principal }) => [target, principal])).toEqual([
      [path, undefined],
      [path, undefined],
    ]);
  });
});
