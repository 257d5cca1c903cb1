import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(() => product.stop());

it("answers gRPC on the HTTP port with GOAWAY that names the right port", async () => {
  const session: ClientHttp2Session = connect(product.url).on("error", () => undefined);
  const goAway = new Promise<{ code: number; words: string }>((resolve) => {
    session.on("goaway", (code, _, data) => resolve({ code, words: Buffer.from(data ?? []).toString() }));
  });
  const stream: ClientHttp2Stream = session.request({ ":method": "POST", ":path": "/parley.v1.ModelService/List" });
  stream.on("error", () => undefined).end();
  expect(await goAway).toEqual({
    code: 0xd,
    words: "This port serves HTTP/1.1. gRPC has a port of its own, 50051 by default (grpc.listen).",
  });
  session.destroy();
});
