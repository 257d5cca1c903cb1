import { once } from "node:events";
import { createRequire } from "node:module";
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  makeClientConstructor,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { service as healthService } from "grpc-health-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GrpcServer } from "../../../src/inbound/grpc/server.ts";
import { startGrpc } from "../../support/idle-services.ts";

let server: GrpcServer;
const clients: Client[] = [];

beforeEach(async () => {
  server = await startGrpc();
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  server.close();
});

/** A stock client, made of the protos that other packages ship. */
function connect(service: ServiceDefinition): unknown {
  const Service = makeClientConstructor(service, "");
  const client = new Service(`127.0.0.1:${server.port}`, credentials.createInsecure());
  clients.push(client);
  return client;
}

interface HealthClient {
  check(request: object, callback: (error: { code: number } | null, answer: unknown) => void): void;
  list(request: object, callback: (error: { code: number } | null, answer: unknown) => void): void;
  watch(request: object): ClientReadableStream<{ status: string }>;
}

describe("the health service", () => {
  const ask = (method: "check" | "list", service = ""): Promise<unknown> =>
    new Promise((resolve) => {
      (connect(healthService) as HealthClient)[method]({ service }, (error, answer) => resolve(error?.code ?? answer));
    });

  it("knows the server and its services, and no others", async () => {
    expect(await ask("check")).toEqual({ status: "SERVING" });
    expect(await ask("check", "parley.v1.KeyService")).toEqual({ status: "SERVING" });
    expect(await ask("check", "other.Service")).toBe(status.NOT_FOUND);
    const { statuses } = (await ask("list")) as { statuses: Record<string, object> };
    expect(Object.keys(statuses)).toHaveLength(5);
  });

  it("reports the shutdown to its watchers", async () => {
    const client = connect(healthService) as HealthClient;
    const known = client.watch({ service: "parley.v1.ModelService" });
    const unknown = client.watch({ service: "other.Service" });
    expect(await once(known, "data")).toEqual([{ status: "SERVING" }]);
    expect(await once(unknown, "data")).toEqual([{ status: "SERVICE_UNKNOWN" }]);
    const next = once(known, "data");
    server.announce();
    expect(await next).toEqual([{ status: "NOT_SERVING" }]);
    expect(await ask("check")).toEqual({ status: "NOT_SERVING" });
    for (const call of [known, unknown]) call.on("error", () => undefined).cancel();
  });
});

interface ReflectionClient {
  serverReflectionInfo(): ClientDuplexStream<object, Record<string, unknown>>;
}

describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
  const proto = createRequire(import.meta.url)
    .resolve("@grpc/reflection")
    .replace(/src\/index\.js$/, "");
  const definition = loadSync(`${proto}proto/grpc/reflection/${version}/reflection.proto`);
  const service = definition[`grpc.reflection.${version}.ServerReflection`] as ServiceDefinition;

  async function ask(request: object): Promise<Record<string, unknown>> {
    const call = (connect(service) as ReflectionClient).serverReflectionInfo();
    call.write(request);
    const [answer] = (await once(call, "data")) as [Record<string, unknown>];
    const over = once(call, "status");
    call.resume().end();
    await over;
    return answer;
  }

  it("lists the services", async () => {
    expect(await ask({ listServices: "*" })).toMatchObject({
      listServicesResponse: {
        service: [
          { name: "parley.v1.CompletionService" },
          { name: "parley.v1.EmbeddingService" },
          { name: "parley.v1.ModelService" },
          { name: "parley.v1.KeyService" },
          { name: "grpc.health.v1.Health" },
        ],
      },
    });
  });

  it.each([
    { fileContainingSymbol: "parley.v1.CompletionService.Create" },
    { fileContainingSymbol: "parley.v1.CompletionRequest.model" },
    { fileByFilename: "parley/v1/completion.proto" },
  ])("gives the file, and what it needs, for %o", async (request) => {
    const { fileDescriptorResponse } = await ask(request);
    const { fileDescriptorProto } = fileDescriptorResponse as { fileDescriptorProto: Buffer[] };
    expect(fileDescriptorProto[0]!.toString("latin1")).toContain("parley/v1/completion.proto");
    expect(fileDescriptorProto.length).toBeGreaterThan(1);
  });

  it("knows what errors carry", async () => {
    expect(await ask({ fileContainingSymbol: "google.rpc.ErrorInfo" })).toHaveProperty("fileDescriptorResponse");
  });

  it.each([
    { fileContainingSymbol: "other.Message" },
    { fileByFilename: "other.proto" },
    { allExtensionNumbersOfType: "parley.v1.Completion" },
  ])("finds nothing for %o, and says so", async (request) => {
    expect(await ask(request)).toMatchObject({ errorResponse: { errorCode: status.NOT_FOUND } });
  });

  it("answers 256 questions on a stream, also in one piece, and no more", async () => {
    const call = (connect(service) as ReflectionClient).serverReflectionInfo();
    const answers: object[] = [];
    call.on("data", (answer: object) => answers.push(answer));
    const over = once(call, "error");
    for (let asked = 0; asked < 256; asked++) call.write({ fileByFilename: "other.proto" });
    await expect.poll(() => answers.length).toBe(256);
    call.write({ fileByFilename: "other.proto" });
    const [ended] = (await over) as [ServiceError];
    expect(ended.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(answers).toHaveLength(256);
  });
});

describe("a message that is none", () => {
  const bytes = (each: Buffer): Buffer => each;
  const broken = Buffer.from([0x0f]);
  const client = (): Client => {
    const raw = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    clients.push(raw);
    return raw;
  };

  it.each(["Check", "Watch"])("is the caller's mistake in %s, and not an internal error", async (method) => {
    const call = client().makeServerStreamRequest(`/grpc.health.v1.Health/${method}`, bytes, bytes, broken).resume();
    const [ended] = (await once(call, "error")) as [ServiceError];
    expect(ended).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining("HealthCheckRequest"),
    });
  });

  it("is so for reflection", async () => {
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const call = client().makeBidiStreamRequest(path, bytes, bytes).resume();
    call.write(broken);
    const [ended] = (await once(call, "error")) as [ServiceError];
    expect(ended.code).toBe(status.INVALID_ARGUMENT);
  });
});
