import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ModelService } from "../../gen/parley/console/v1/model_pb.js";
import { KeyService } from "../../gen/parley/console/v1/key_pb.js";
import { PlaygroundService } from "../../gen/parley/console/v1/playground_pb.js";
import { RequestService } from "../../gen/parley/console/v1/request_pb.js";
import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { StopKind, StopService } from "../../gen/parley/console/v1/stop_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { signUpFirst } from "../support/signed-up.ts";
import { beginStream, END_EVENTS, localModel, startUpstream, textEvent, type Upstream } from "./support/upstream.ts";

let upstream: Upstream;
let product: Product;

beforeEach(async () => {
  upstream = await startUpstream(({ response }) => {
    beginStream(response);
    response.write(textEvent("first words"));
  });
  product = await startProduct({ config: localModel(upstream.url) });
});
afterEach(async () => {
  await product.stop();
  await upstream.close();
});

/** The dashboard's services for the first administrator, and one of its keys. */
async function signUp() {
  const transport = await signUpFirst(product.url);
  const { key } = await createClient(KeyService, transport).create({ name: "try" });
  return {
    keyId: key!.id,
    models: createClient(ModelService, transport),
    playground: createClient(PlaygroundService, transport),
    log: createClient(RequestService, transport),
    stops: createClient(StopService, transport),
  };
}

type People = Awaited<ReturnType<typeof signUp>>;

/** Asks for a completion; the answer has begun when it resolves. */
async function ask({ playground, keyId }: People, signal?: AbortSignal) {
  const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
  const options = signal === undefined ? {} : { signal };
  const stream = playground.stream({ keyId, completion: { model: "local/test", messages } }, options);
  const chunks = stream[Symbol.asyncIterator]();
  const next = async (): Promise<CompletionChunk["event"]["case"]> => (await chunks.next()).value?.chunk?.event.case;
  expect(await next()).toBe("start");
  expect([await next(), await next()]).toEqual(["partStart", "partDelta"]);
  return next;
}

describe("the console of the running product", () => {
  it("explains a request in a format", async () => {
    const { models, keyId } = await signUp();
    const body = Buffer.from(JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] }));
    const { plan } = await models.explainRoute({ keyId, completion: { inFormat: { path: "/v1/route", body } } });
    expect(plan).toMatchObject({ model: "local/test", refusals: [] });
    await expect(
      models.explainRoute({ keyId, completion: { inFormat: { path: "/v1/chat/completions", body } } }),
    ).rejects.toThrow("in_format.path: is not the path of a request for an explanation");
    expect(upstream.exchanges).toEqual([]);
  });
});

describe("the playground of the running product", () => {
  it("finishes an answer after SIGTERM, and exits with 0", async () => {
    const next = await ask(await signUp());
    product.signal("SIGTERM");
    await expect.poll(() => fetch(`${product.operationsUrl}/readyz`).then(({ status }) => status)).toBe(503);
    upstream.exchanges[0]!.response.end(textEvent("last words") + END_EVENTS);
    expect([await next(), await next(), await next()]).toEqual(["partDelta", "partFinish", "choiceFinish"]);
    let last: string | undefined;
    for (let event = await next(); event !== undefined; event = await next()) last = event;
    expect(last).toBe("report");
    expect(await product.ending).toEqual({ code: 0, signal: null });
  });

  it("serves no end user and no session that is stopped, and records for whom it serves", async () => {
    const { playground, keyId, stops, log } = await signUp();
    await stops.create({ kind: StopKind.END_USER, value: "ann" });
    await stops.create({ kind: StopKind.SESSION, value: "run 7" });
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
    const firstOf = async (who: { readonly endUserId: string; readonly sessionId: string }) => {
      const completion = { model: "local/test", messages, ...who };
      for await (const { chunk } of playground.stream({ keyId, completion })) if (chunk !== undefined) return chunk;
      return undefined;
    };
    await expect(firstOf({ endUserId: "ann", sessionId: "run 8" })).rejects.toThrow(/This end user is stopped/);
    await expect(firstOf({ endUserId: "ben", sessionId: "run 7" })).rejects.toThrow(/This session is stopped/);
    expect(upstream.exchanges).toEqual([]);
    expect((await firstOf({ endUserId: "ben", sessionId: "run 8" }))?.event.case).toBe("start");
    upstream.exchanges[0]!.response.end(END_EVENTS);
    await expect.poll(async () => (await log.list({ filter: { session: "run 8" } })).requests).toHaveLength(1);
  });

  it("cancels the provider's answer when its reader leaves, and records it with the entrance console", async () => {
    const people = await signUp();
    const controller = new AbortController();
    await ask(people, controller.signal);
    controller.abort();
    await expect.poll(() => upstream.exchanges[0]!.closed).toBe(true);
    const entries = async () => (await people.log.list({})).requests;
    await expect.poll(async () => (await entries())[0]?.outcome).toBe("cancelled");
    expect((await entries())[0]).toMatchObject({ entrance: "console", keyId: people.keyId, partial: true });
    const metrics = await (await fetch(`${product.operationsUrl}/metrics`)).text();
    expect(metrics).toMatch(/parley_completions_total\{entrance="console",model="local\/test",outcome="cancelled"/);
    expect(product.output.stdout + product.output.stderr).not.toContain("first words");
  });
});
