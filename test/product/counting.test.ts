import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

const QUESTION = create(MessageSchema, {
  role: Role.USER,
  parts: [{ kind: { case: "text", value: "How long is a day on Venus?" } }],
});

let upstream: Upstream;
let product: Product;
/** Without a provider: the simulator answers. */
let simulated: Product;

beforeAll(async () => {
  upstream = await startUpstream(({ response }) => answerJson(response, 500, { error: { message: "no" } }));
  product = await startProduct({ config: localModel(upstream.url) });
  simulated = await startProduct();
});

afterAll(async () => {
  await product.stop();
  await simulated.stop();
  await upstream.close();
});

describe.each(["gRPC", "Connect"])("the tokens of a request over %s", (protocol) => {
  const clientOf = ({ url, grpcPort, firstKey }: Product) => {
    const withKey: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${firstKey}`);
      return next(request);
    };
    const interceptors = [withKey];
    const transport =
      protocol === "gRPC"
        ? createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}`, interceptors })
        : createConnectTransport({ baseUrl: url, httpVersion: "1.1", interceptors });
    return createClient(CompletionService, transport);
  };

  it.each(["alpha-haiku-4.5", "beta-3-flash"])("are counted by the provider of %s", async (model) => {
    const client = clientOf(simulated);
    const request = { model, messages: [QUESTION], maxOutputTokens: 16, temperature: 0.5 };
    const { inputTokens, estimated } = await client.count(request);
    const { usage } = await client.create(request);
    expect({ inputTokens, estimated }).toEqual({ inputTokens: usage?.inputTokens, estimated: false });
  });

  it("are estimated, rather too high, where the dialect has no count", async () => {
    const { inputTokens, estimated, model } = await clientOf(product).count({
      model: "local/test",
      messages: [QUESTION],
    });
    expect(estimated).toBe(true);
    expect(model).toBe("local/test");
    expect(inputTokens).toBeGreaterThanOrEqual(8);
    expect(inputTokens).toBeLessThan(20);
    expect(upstream.exchanges).toEqual([]);
  });

  it("are not counted of a request that is invalid", async () => {
    const error = await clientOf(simulated)
      .count({ model: "alpha-haiku-4.5", messages: [] })
      .catch((reason: unknown) => ConnectError.from(reason));
    expect(error).toMatchObject({ code: Code.InvalidArgument });
  });
});
