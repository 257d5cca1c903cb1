import { expect, it, onTestFinished } from "vitest";
import { testModel } from "../../src/gateway/provider-test.ts";
import { openai } from "../../src/providers/openai/provider.ts";
import { connectUpstream } from "../../src/providers/transport/http.ts";
import { startUpstream } from "../product/support/upstream.ts";
import { modelOf } from "../support/scripted-provider.ts";

it.each([false, true])("reads no large answer to the test of a model (stream: %s)", async (isStream) => {
  const text = "A".repeat(4 * 1024 * 1024);
  const server = await startUpstream(({ response }) => {
    if (isStream) response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${text}\n\n`);
    else response.writeHead(200, { "content-type": "application/json" }).end(`{"choices":"${text}"}`);
  });
  onTestFinished(() => server.close());
  const upstream = connectUpstream({ baseUrl: server.url, allowPrivate: true, connectMs: 5_000 });
  const provider = openai({ upstream, headers: {}, redact: (of) => of });
  const translate: typeof provider.translate = (...given) => ({ ...provider.translate(...given), streamed: isStream });
  const testing = testModel(modelOf("m", { ...provider, translate }));
  await expect(testing).rejects.toMatchObject({ code: "upstream_protocol", message: /too long for one token/ });
});
