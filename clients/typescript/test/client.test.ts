import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import type { DescMethodBiDiStreaming, DescMethodUnary } from "@bufbuild/protobuf";
import { Code, KeyCapability, Modality, ModelService, ParleyClient, type ParleyClientOptions } from "@parley/client";
import { localhost } from "./localhost-certificate.js";
import { checkHealth, reflect } from "./services.js";
import { failure, gateway, MODEL, parley, say, startServer } from "./support.js";

test("models-and-key: lists models, gets one, and describes the key", async () => {
  const { models } = await parley.models.list();
  assert.ok(models.some(({ id }) => id === MODEL));
  const { models: painters } = await parley.models.list({ outputModalities: [Modality.IMAGE] });
  assert.ok(painters.some(({ id }) => id === "painter"));
  assert.ok(painters.every(({ id }) => id !== MODEL));

  const first = await parley.models.list({ pageSize: 1 });
  const second = await parley.models.list({ pageSize: 1, pageToken: first.nextPageToken });
  assert.deepEqual(
    [...first.models, ...second.models].map(({ id }) => id),
    models.slice(0, 2).map(({ id }) => id),
  );

  const model = await parley.models.get(MODEL);
  assert.equal(model.id, MODEL);
  assert.ok(model.contextWindow! > 0);

  const key = await parley.key.getCurrent();
  assert.match(key.id, /^key_/);
  assert.ok(key.capabilities.includes(KeyCapability.CHAT));
});

test("health: another service is called through the transport", async () => {
  const { message } = await parley.transport.unary(checkHealth as DescMethodUnary, undefined, 5000, undefined, {});
  const serving = 1;
  assert.equal((message as unknown as { status: number }).status, serving);
});

test("reflection: lists the services", async () => {
  async function* requests() {
    yield { listServices: "*" };
  }
  const method = reflect as DescMethodBiDiStreaming;
  const names: string[] = [];
  const { message } = await parley.transport.stream(method, undefined, 5000, undefined, requests());
  for await (const response of message) {
    const { listServicesResponse } = response as unknown as {
      listServicesResponse: { service: readonly { name: string }[] };
    };
    names.push(...listServicesResponse.service.map(({ name }) => name));
  }
  for (const name of ["CompletionService", "ModelService", "KeyService"])
    assert.ok(names.includes(`parley.v1.${name}`));
});

test("an address without a server is a clear error, fast", async () => {
  const stopped = await startServer({});
  stopped.stop();
  const startedAt = Date.now();
  const error = await failure(stopped.client.models.list({}, { requestId: "req_lost" }));
  assert.equal(error.code, Code.Unavailable);
  assert.match(error.message, /ECONNREFUSED/);
  assert.equal(error.requestId, "req_lost");
  assert.equal(error.retryable, true);
  assert.ok(Date.now() - startedAt < 5000);
});

test("options that cannot work are refused, without the key", () => {
  const usable = { address: "localhost:50051", apiKey: "sk_secret" };
  const refused: [ParleyClientOptions, RegExp][] = [
    [{ ...usable, address: "" }, /address is empty/],
    [{ ...usable, address: "localhost" }, /not host:port/],
    [{ ...usable, address: "http://localhost:50051" }, /not host:port/],
    [{ ...usable, address: "localhost:50051/v1" }, /not host:port/],
    [{ ...usable, address: "localhost:99999" }, /not host:port/],
    [{ ...usable, apiKey: "" }, /API key is empty/],
    [{ ...usable, apiKey: undefined as unknown as string }, /API key is empty/],
    [{ ...usable, apiKey: "sk_secret\n" }, /newline/],
    [{ ...usable, ca: localhost.cert, plaintext: true }, /`ca` is for TLS/],
  ];
  for (const [options, message] of refused)
    assert.throws(
      () => new ParleyClient(options),
      (error: Error) => error instanceof TypeError && message.test(error.message) && !/sk_secret/.test(error.message),
    );
  for (const address of ["localhost:50051", "127.0.0.1:1", "[::1]:50051", "parley.example.com:443"])
    assert.ok(new ParleyClient({ ...usable, address }));
});

test("the printed client and its errors have no key", async () => {
  await parley.models.list();
  const printed = [
    inspect(parley, { depth: Number.POSITIVE_INFINITY, showHidden: true, getters: true }),
    JSON.stringify(parley),
    String(parley),
    inspect(await failure(parley.models.get("no-such-model")), { depth: Number.POSITIVE_INFINITY, showHidden: true }),
  ];
  for (const text of printed) assert.ok(!text.includes(gateway.apiKey));
});

test("TLS: is the default, and takes an authority of one's own", async (t) => {
  const server = await startServer(
    { routes: (router) => router.service(ModelService, { get: ({ id }) => ({ id }) }) },
    localhost,
  );
  t.after(() => server.stop());
  assert.equal((await server.client.models.get("m")).id, "m");
  assert.equal(server.calls[0]?.["authorization"], "Bearer sk_test");

  const distrustful = new ParleyClient({ address: server.address, apiKey: "sk_test" });
  const error = await failure(distrustful.models.get("m"));
  assert.match(error.message, /self.signed certificate/i);
  assert.equal(server.calls.length, 1);
});

test("TLS: a client with it does not send the key to a server without", async (t) => {
  const server = await startServer({});
  t.after(() => server.stop());
  const client = new ParleyClient({ address: server.address, apiKey: "sk_test" });
  await failure(client.models.get("m", { timeoutMs: 2000 }));
  assert.equal(server.calls.length, 0);
});

test("close ends calls under way; a later call connects again", async () => {
  const client = new ParleyClient({ address: gateway.address, apiKey: gateway.apiKey, plaintext: true });
  const call = failure(client.completions.create(say("Hello", "silent")));
  setTimeout(() => client.close(), 200);
  assert.equal((await call).code, Code.Canceled);
  assert.equal((await client.models.get(MODEL)).id, MODEL);
  client.close();
});
