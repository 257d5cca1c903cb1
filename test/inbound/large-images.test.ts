import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Client, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  CompletionChunkSchema,
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionService,
} from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { encode } from "../../src/inbound/grpc/definition.ts";
import { ImageJoiner } from "../../src/inbound/image-pieces.ts";
import { fold } from "../support/fold.ts";
import { startTestFront, type TestFront } from "../support/front.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedUpstream, sends, startScriptedUpstream } from "../support/scripted-upstream.ts";

const MIB = 1024 * 1024;
const PICTURE = randomBytes(6 * MIB);
const BASE64 = PICTURE.toString("base64");
const ANSWER = JSON.stringify({
  candidates: [
    {
      content: { role: "model", parts: [{ inlineData: { mimeType: "image/png", data: BASE64 } }] },
      finishReason: "STOP",
    },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
});

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let front: TestFront;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script("painter", [
    (call) =>
      (call.streamed ? sends(200, "text/event-stream", `data: ${ANSWER}\n\n`) : sends(200, "application/json", ANSWER))(
        call,
      ),
  ]);
  gateway = await startTestGateway({
    config: {
      providers: { vendor: { dialect: "gemini", base_url: upstream.url, api_keys: ["x"], allow_private: true } },
      models: {
        painter: {
          provider: "vendor",
          upstream_model: "painter",
          modalities: { input: ["text"], output: ["text", "image"] },
        },
      },
    },
  });
  front = await startTestFront(`127.0.0.1:${gateway.grpcPort}`);
});

afterAll(async () => {
  await front.close();
  await gateway.close();
  await upstream.close();
});

const ENTRANCES: readonly [name: string, open: () => Transport][] = [
  ["gRPC", () => createGrpcTransport({ baseUrl: `http://127.0.0.1:${gateway.grpcPort}` })],
  ["Connect", () => createConnectTransport({ baseUrl: `http://127.0.0.1:${gateway.httpPort}`, httpVersion: "1.1" })],
  ["a front", () => createConnectTransport({ baseUrl: `http://127.0.0.1:${front.httpPort}`, httpVersion: "1.1" })],
];

const ask = (more: { readonly maxResponseBytes?: number } = {}): CompletionRequest =>
  create(CompletionRequestSchema, {
    model: "painter",
    modalities: [Modality.TEXT, Modality.IMAGE],
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "Draw." } }] }],
    ...more,
  });

const options = () => ({ headers: { authorization: `Bearer ${gateway.key}` } });

describe.each(ENTRANCES)("an image of 6 MiB over %s", (name, open) => {
  const client = (): Client<typeof CompletionService> => createClient(CompletionService, open());

  it("is streamed in chunks below 1 MiB", async () => {
    const joiner = new ImageJoiner();
    const whole = [];
    for await (const chunk of client().stream(ask(), options())) {
      expect(encode(CompletionChunkSchema, chunk).length).toBeLessThan(MIB);
      whole.push(...joiner.join([chunk]));
    }
    const [part] = fold(whole).choices[0]!.message!.parts;
    expect(part!.kind).toMatchObject({ case: "image", value: { mediaType: "image/png", source: { case: "data" } } });
    const image = part!.kind.case === "image" ? part!.kind.value.source.value : undefined;
    expect(PICTURE.equals(image as Uint8Array)).toBe(true);
  });

  it("is in a whole completion if max_response_bytes allows it", async () => {
    const completion = await client().create(ask({ maxResponseBytes: 64 * MIB }), options());
    const [part] = completion.choices[0]!.message!.parts;
    const image = part!.kind.case === "image" ? part!.kind.value.source.value : undefined;
    expect(PICTURE.equals(image as Uint8Array)).toBe(true);
  });

  it("is refused with advice if max_response_bytes does not allow it", async () => {
    const asked = name === "gRPC" ? ask() : ask({ maxResponseBytes: 4 * MIB });
    const error = await client()
      .create(asked, options())
      .then(
        () => undefined,
        (reason: unknown) => ConnectError.from(reason),
      );
    expect(error?.code).toBe(Code.ResourceExhausted);
    expect(error?.rawMessage).toMatch(/max_response_bytes is 4194304\. Use Stream, or raise max_response_bytes/);
    expect(error?.findDetails(ErrorInfoSchema)).toMatchObject([{ domain: "parley", reason: "RESPONSE_TOO_LARGE" }]);
    expect(error?.metadata.get("grpc-retry-pushback-ms") ?? "-1").toBe("-1");
  });

  it("is refused if max_response_bytes is no size", async () => {
    await expect(client().create(ask({ maxResponseBytes: 0 }), options())).rejects.toThrow(/max_response_bytes: /);
  });
});

it.each([
  ["a gateway", () => gateway.httpPort],
  ["a front", () => front.httpPort],
])("an image of 6 MiB is one chunk for an OpenAI client of %s", async (_, port) => {
  const post = async (stream: boolean): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port()}/v1/chat/completions`, {
      method: "POST",
      headers: { ...options().headers, "content-type": "application/json" },
      body: JSON.stringify({
        model: "painter",
        modalities: ["text", "image"],
        stream,
        messages: [{ role: "user", content: "Draw." }],
      }),
    });
    return response.text();
  };
  expect(await post(true)).toContain(`data:image/png;base64,${BASE64}"`);
  expect(await post(false)).toContain(`data:image/png;base64,${BASE64}"`);
});
