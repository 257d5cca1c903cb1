import { fromBinary } from "@bufbuild/protobuf";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { bufCurl, type BufResult, messagesOf } from "./support/buf-curl.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const CREATE = "parley.v1.CompletionService/Create";
const STREAM = "parley.v1.CompletionService/Stream";

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    // What asks to wait is never answered.
    if (!exchange.body.includes("wait")) answerText(exchange, "Hello there");
  });
  product = await startProduct({ config: localModel(upstream.url) });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

function request(content: string, rest: object = {}): string {
  const messages = [{ role: "ROLE_USER", parts: [{ text: content }] }];
  return JSON.stringify({ model: "local/test", messages, ...rest });
}

const key = (): readonly string[] => ["--header", `authorization: Bearer ${product.firstKey}`];

/** Over gRPC, knowing nothing but the address: what the methods take comes from reflection. */
function overGrpc(target: string, ...options: readonly string[]): Promise<BufResult> {
  const address = `http://127.0.0.1:${product.grpcPort}${target === "" ? "" : `/${target}`}`;
  return bufCurl("--http2-prior-knowledge", "--protocol", "grpc", ...options, address);
}

/** Over the Connect protocol, on the HTTP port. */
function overConnect(target: string, ...options: readonly string[]): Promise<BufResult> {
  return bufCurl("--protocol", "connect", "--schema", PROTO, ...options, `${product.url}/${target}`);
}

interface ErrorReport {
  readonly code: string;
  readonly message: string;
  readonly details: readonly { readonly type: string; readonly value: string }[];
}

/** A detail's bytes, which arrive as base64. */
function detailOf({ stderr }: BufResult, type: string): Buffer {
  const report = JSON.parse(stderr) as ErrorReport;
  return Buffer.from(report.details.find((detail) => detail.type === type)?.value ?? "", "base64");
}

describe("buf curl over gRPC, with reflection only", () => {
  it("lists the services' methods", async () => {
    const { stdout, code } = await overGrpc("", "--list-methods");
    expect(code).toBe(0);
    expect(stdout.trim().split("\n")).toEqual(
      expect.arrayContaining([
        CREATE,
        STREAM,
        "parley.v1.ModelService/List",
        "parley.v1.ModelService/Get",
        "parley.v1.KeyService/GetCurrent",
      ]),
    );
  });

  it("finds every service healthy", async () => {
    for (const service of ["", "parley.v1.CompletionService", "parley.v1.ModelService", "parley.v1.KeyService"]) {
      const data = JSON.stringify({ service });
      const result = await overGrpc("grpc.health.v1.Health/Check", "--data", data);
      expect(messagesOf(result)).toEqual([{ status: "SERVING" }]);
    }
  });

  it("gets a whole completion, with the routing facts in the metadata", async () => {
    const result = await overGrpc(CREATE, ...key(), "--verbose", "--data", request("hi"));
    expect(messagesOf(result)).toMatchObject([
      {
        model: "local/test",
        choices: [
          {
            message: { role: "ROLE_ASSISTANT", parts: [{ text: "Hello there" }] },
            finishReason: "FINISH_REASON_STOP",
          },
        ],
        usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
        report: { attempts: [{ model: "local/test", outcome: "ATTEMPT_OUTCOME_SERVED" }] },
      },
    ]);
    expect(result.stderr).toMatch(/X-Request-Id: req_/);
    expect(result.stderr).toMatch(/Parley-Served-Model: local\/test/);
  });

  it("gets a stream: its start, its text, its finish and its report", async () => {
    const messages = messagesOf(await overGrpc(STREAM, ...key(), "--data", request("hi")));
    const [first] = messages;
    expect(first).toMatchObject({ start: { model: "local/test" } });
    expect(messages).toContainEqual({ partDelta: { text: "Hello there" } });
    expect(messages).toContainEqual(
      expect.objectContaining({ choiceFinish: expect.objectContaining({ finishReason: "FINISH_REASON_STOP" }) }),
    );
    expect(messages.at(-1)).toMatchObject({ report: { attempts: [{ outcome: "ATTEMPT_OUTCOME_SERVED" }] } });
  });

  it("lists the models", async () => {
    const [list] = messagesOf(await overGrpc("parley.v1.ModelService/List", ...key(), "--data", "{}"));
    expect(list).toMatchObject({
      models: [{ id: "local/test", provider: "local", price: { inputMicroUsdPerMtok: "1000000", outputMicroUsdPerMtok: "2000000" } }],
    });
  });

  it("shows an error's status and its details", async () => {
    const result = await overGrpc(CREATE, ...key(), "--data", request("hi", { temperature: 7 }));
    // buf's exit code for a status is eight times its number.
    expect(result.code).toBe(3 * 8);
    expect(JSON.parse(result.stderr)).toMatchObject({ code: "invalid_argument" });
    const info = fromBinary(ErrorInfoSchema, detailOf(result, "google.rpc.ErrorInfo"));
    expect(info).toMatchObject({ reason: "INVALID_REQUEST", domain: "parley" });
    const { fieldViolations } = fromBinary(BadRequestSchema, detailOf(result, "google.rpc.BadRequest"));
    expect(fieldViolations.map((violation) => violation.field)).toEqual(["temperature"]);
  });

  it("is refused without a key", async () => {
    const result = await overGrpc(CREATE, "--data", request("hi"));
    expect(result.code).toBe(16 * 8);
    expect(JSON.parse(result.stderr)).toMatchObject({ code: "unauthenticated" });
  });

  it("has a deadline that closes the upstream's socket", async () => {
    for (const method of [CREATE, STREAM]) {
      const result = await overGrpc(method, ...key(), "--timeout", "1s", "--data", request("wait"));
      expect(result.code).toBe(4 * 8);
      expect(JSON.parse(result.stderr)).toMatchObject({ code: "deadline_exceeded" });
      await expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
    }
  });
});

describe("buf curl over the Connect protocol", () => {
  it("gets a whole completion", async () => {
    const result = await overConnect(CREATE, ...key(), "--data", request("hi"));
    expect(messagesOf(result)).toMatchObject([
      { model: "local/test", choices: [{ message: { parts: [{ text: "Hello there" }] } }] },
    ]);
  });

  it("gets a stream", async () => {
    const messages = messagesOf(await overConnect(STREAM, ...key(), "--data", request("hi")));
    expect(messages).toContainEqual({ partDelta: { text: "Hello there" } });
    expect(messages.at(-1)).toMatchObject({ report: { attempts: [{ outcome: "ATTEMPT_OUTCOME_SERVED" }] } });
  });

  it("shows an error's status and its details", async () => {
    const unknown = request("hi", { model: "gamma-9" });
    const result = await overConnect(CREATE, ...key(), "--data", unknown);
    expect(result.code).toBe(5 * 8);
    const info = fromBinary(ErrorInfoSchema, detailOf(result, "google.rpc.ErrorInfo"));
    expect(info.reason).toBe("MODEL_NOT_FOUND");
  });
});
