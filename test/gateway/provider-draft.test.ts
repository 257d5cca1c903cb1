import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Failure } from "../../src/core/failure.ts";
import { testDraft } from "../../src/gateway/provider-draft.ts";

it("a test of a provider ends its completion when the caller has gone", async () => {
  const ending = new AbortController();
  const completion = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    if (request.method === "GET") return void response.end('{"data":[]}');
    response.once("close", completion.resolve);
    ending.abort(new Failure("cancelled", "The caller has gone."));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const source = { file: "parley.yaml", text: "stored_configuration: { allow_private: true }", env: {} };
  const draft = {
    name: "acme",
    entry: `{ dialect: openai, base_url: "${url}", allow_private: true }`,
    apiKeys: ["a-long-enough-credential"],
    upstreamModel: "one",
  };
  const begun: string[] = [];
  const begin = async (address: string) => void begun.push(address);
  const test = testDraft(source, draft, { clock: systemClock, ending: ending.signal, begin });
  await expect(test).rejects.toMatchObject({ code: "cancelled" });
  await completion.promise;
  expect(begun).toEqual([new URL(url).origin]);
});
