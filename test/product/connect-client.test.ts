import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, createClient, type Client, type Transport } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/parley/v1/error_pb.js";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { CompletionRequestSchema, CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { GetModelRequestSchema, ModelSchema, ModelService } from "../../gen/parley/v1/model_pb.js";
import { AttemptListSchema, AttemptOutcome, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";

let upstream: Upstream;
let product: Product;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { body, response } = exchange;
    if (body.includes("break")) return answerJson(response, 400, { error: { message: "no", type: "x" } });
    if (!body.includes("wait")) return answerText(exchange, "Hello there");
    if (!body.includes('"stream":true')) return;
    beginStream(response);
    response.write(textEvent("Once upon"));
  });
  product = await startProduct({ config: { ...localModel(upstream.url), timeouts: { settle_ms: 100 } } });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

const TRANSPORTS: readonly [name: string, open: () => Transport][] = [
  ["gRPC", () => createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` })],
  [
    "the Connect protocol in binary",
    () => createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", useBinaryFormat: true }),
  ],
  [
    "the Connect protocol in JSON",
    () => createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", useBinaryFormat: false }),
  ],
  ["gRPC-Web in binary", () => createGrpcWebTransport({ baseUrl: product.url, httpVersion: "1.1" })],
  [
    "gRPC-Web in JSON",
    () => createGrpcWebTransport({ baseUrl: product.url, httpVersion: "1.1", useBinaryFormat: false }),
  ],
  [
    "the Connect protocol with GET for reads",
    () => createConnectTransport({ baseUrl: product.url, httpVersion: "1.1", useHttpGet: true }),
  ],
];

function ask(text: string, model = "local/test") {
  return create(CompletionRequestSchema, {
    model,
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: text } }] }],
  });
}

const headers = (): Record<string, string> => ({ authorization: `Bearer ${product.firstKey}` });

const rejected = rejectionsOf(ConnectError);
const errorOf = (run: () => Promise<unknown>): Promise<ConnectError> => rejected(run());

const closedSoon = () => expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);

describe.each(TRANSPORTS)("a typed client over %s", (_, open) => {
  const completions = (): Client<typeof CompletionService> => createClient(CompletionService, open());

  it("gets a whole completion and its routing facts", async () => {
    let served: string | null = null;
    const completion = await completions().create(ask("hi"), {
      headers: headers(),
      onHeader: (answered) => void (served = answered.get("parley-served-model")),
    });
    expect(completion.choices[0]?.message?.parts[0]?.kind).toEqual({ case: "text", value: "Hello there" });
    expect(completion.usage?.totalTokens).toBe(5);
    expect(served).toBe("local/test");
  });

  it("reads a stream to its end", async () => {
    const chunks = await Array.fromAsync(completions().stream(ask("hi"), { headers: headers() }));
    expect(chunks.map((chunk) => chunk.event.case)).toEqual([
      "start",
      "partStart",
      "partDelta",
      "partFinish",
      "choiceFinish",
      "report",
    ]);
  });

  it("lists models and gets one", async () => {
    const models = createClient(ModelService, open());
    expect((await models.list({}, { headers: headers() })).models.map((model) => model.id)).toEqual(["local/test"]);
    expect(await models.get({ id: "local/test" }, { headers: headers() })).toMatchObject({ contextWindow: 100_000 });
  });

  it("reads the details of an error", async () => {
    const error = await errorOf(() => completions().create(ask("break"), { headers: headers() }));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "UPSTREAM_REJECTED", domain: "parley" }]);
    const [list] = error.findDetails(AttemptListSchema);
    expect(list?.attempts).toMatchObject([
      {
        model: "local/test",
        outcome: AttemptOutcome.FAILED,
        failureReason: ErrorReason.UPSTREAM_REJECTED,
        httpStatusCode: 400,
      },
    ]);
    expect(error.metadata.get("x-request-id")).toMatch(/^req_/);
  });

  it("reads the details of an error of a stream", async () => {
    const error = await errorOf(() => Array.fromAsync(completions().stream(ask("break"), { headers: headers() })));
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "UPSTREAM_REJECTED", domain: "parley" }]);
  });

  it("is refused without a key", async () => {
    const error = await errorOf(() => completions().create(ask("hi")));
    expect(error.code).toBe(Code.Unauthenticated);
  });

  it("closes the upstream when its signal cancels a whole completion", async () => {
    const controller = new AbortController();
    const asked = upstream.exchanges.length;
    const call = errorOf(() => completions().create(ask("wait"), { headers: headers(), signal: controller.signal }));
    await expect.poll(() => upstream.exchanges.length, { interval: 10 }).toBe(asked + 1);
    controller.abort();
    expect((await call).code).toBe(Code.Canceled);
    await closedSoon();
  });

  it("closes the upstream when its signal cancels a stream", async () => {
    const controller = new AbortController();
    const error = await errorOf(async () => {
      const stream = completions().stream(ask("wait"), { headers: headers(), signal: controller.signal });
      for await (const { event } of stream) if (event.case === "partDelta") controller.abort();
    });
    expect(error.code).toBe(Code.Canceled);
    await closedSoon();
  });

  it("closes the upstream when its deadline passes", async () => {
    const error = await errorOf(() => completions().create(ask("wait"), { headers: headers(), timeoutMs: 200 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    await closedSoon();
  });
});

describe("a read by GET", () => {
  const get = (query: string, path = "/parley.v1.ModelService/Get"): Promise<Response> =>
    fetch(`${product.url}${path}?${query}`, { headers: headers() });
  const message = encodeURIComponent('{"id":"local/test"}');

  it("is answered, in JSON and in binary", async () => {
    const json = await get(`connect=v1&encoding=json&message=${message}`);
    expect([json.status, await json.json()]).toMatchObject([200, { id: "local/test" }]);
    const bytes = Buffer.from(toBinary(GetModelRequestSchema, create(GetModelRequestSchema, { id: "local/test" })));
    const binary = await get(`encoding=proto&base64=1&message=${bytes.toString("base64url")}`);
    expect(fromBinary(ModelSchema, await binary.bytes()).id).toBe("local/test");
  });

  it.each([
    ["encoding=json", "must have the message"],
    [`message=${message}`, "must have encoding"],
    [`encoding=json&compression=br&message=${message}`, "must be gzip or identity"],
    ["encoding=json&message=%7B", "is not valid JSON"],
    ["encoding=proto&message=%FF%FF", "is not a parley.v1.GetModelRequest message"],
  ])("is refused as Connect says: %s", async (query, why) => {
    const answer = await get(query);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(why) }),
    ]);
  });

  it("is not offered for completions", async () => {
    const answer = await get(`encoding=json&message=${message}`, "/parley.v1.CompletionService/Create");
    expect([answer.status, answer.headers.get("allow")]).toEqual([404, "POST"]);
  });
});

describe("a refusal of gRPC-Web before the call", () => {
  const post = (contentType: string, body: Uint8Array, more: Record<string, string> = {}): Promise<Response> =>
    fetch(`${product.url}/parley.v1.ModelService/List`, {
      method: "POST",
      headers: { ...headers(), "content-type": contentType, ...more },
      body,
    });

  it.each([
    ["text", "application/grpc-web-text", Buffer.alloc(5), {}],
    ["without an envelope", "application/grpc-web+proto", Buffer.alloc(3), {}],
    ["an unknown encoding", "application/grpc-web+proto", Buffer.alloc(5), { "grpc-encoding": "br" }],
    ["an unreadable deadline", "application/grpc-web+proto", Buffer.alloc(5), { "grpc-timeout": "soon" }],
  ])("is in the headers: %s", async (_, contentType, body, more) => {
    const answer = await post(contentType, body, more);
    expect([answer.status, answer.headers.get("content-type"), answer.headers.get("grpc-status")]).toEqual([
      200,
      "application/grpc-web+proto",
      "3",
    ]);
    expect(await answer.text()).toBe("");
  });
});

describe.each([
  ["binary", true],
  ["JSON", false],
])("a client that compresses its requests in %s with gzip", (_, useBinaryFormat) => {
  const client = (): Client<typeof CompletionService> => {
    const options = { httpVersion: "1.1", useBinaryFormat, sendCompression: compressionGzip } as const;
    return createClient(CompletionService, createConnectTransport({ baseUrl: product.url, ...options }));
  };
  // Longer than what clients compress.
  const long = ask("hi ".repeat(2_000));

  it("gets a whole completion", async () => {
    const { choices } = await client().create(long, { headers: headers() });
    expect(choices[0]!.message!.parts[0]!.kind.value).toBe("Hello there");
    expect(upstream.exchanges.at(-1)!.body).toContain("hi hi hi");
  });

  it("gets a stream", async () => {
    const events: (string | undefined)[] = [];
    for await (const { event } of client().stream(long, { headers: headers() })) events.push(event.case);
    expect(events.at(-1)).toBe("report");
  });
});

describe.each(TRANSPORTS.slice(0, 2))("a field that this version does not know, over %s", (_, open) => {
  const client = (): Client<typeof CompletionService> => createClient(CompletionService, open());
  const request = (strict: boolean) => {
    const message = { ...ask("hi"), strict };
    message.$unknown = [{ no: 100, wireType: WireType.Varint, data: Uint8Array.of(1) }];
    return message;
  };

  it("is listed as omitted", async () => {
    const { report } = await client().create(request(false), { headers: headers() });
    expect(report?.omitted).toMatchObject([{ field: "100", reason: OmissionReason.UNKNOWN }]);
  });

  it("is refused by a strict request", async () => {
    const error = await errorOf(() => client().create(request(true), { headers: headers() }));
    expect([error.code, error.rawMessage]).toEqual([
      Code.InvalidArgument,
      "100: is not known here, and the request is strict.",
    ]);
  });
});

it("a deadline that has passed before the body is read ends in an error, not in a closed connection", async () => {
  const response = await fetch(`${product.url}/parley.v1.CompletionService/Create`, {
    method: "POST",
    headers: { ...headers(), "content-type": "application/json", "connect-timeout-ms": "0" },
    body: "{}",
  });
  expect(await response.json()).toMatchObject({ code: "deadline_exceeded" });
});
