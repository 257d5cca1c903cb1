import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { openaiResponses } from "../../../src/formats/openai-responses/format.ts";
import { Exchange } from "../../../src/inbound/http/exchange.ts";

const BODY = '{"output":"é","store": true}';
const END = '"store": true}';
const OTHER_END = '"store":false}';

it("sends all but the end of a body whose end is known later", async () => {
  const end = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    const exchange = new Exchange(request, response, {
      requestId: "req_1",
      clock: systemClock,
      headers: [],
      formatOf: () => openaiResponses,
      connection: request.socket,
    });
    const open = {
      answering: () => ({ signal: new AbortController().signal, leave: () => undefined, wrote: () => undefined }),
    };
    void exchange.largeJson(BODY, [], {
      clock: systemClock,
      open,
      end: { bytes: END.length, text: (asWritten) => end.promise.then((text) => (asWritten === END ? text : "")) },
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/responses`);
  expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(BODY)));
  const reader = response.body!.getReader();
  const first = await reader.read();
  expect(Buffer.from(first.value).toString()).toBe('{"output":"é",');
  end.resolve(OTHER_END);
  const second = await reader.read();
  expect(Buffer.from(second.value).toString()).toBe(OTHER_END);
  expect((await reader.read()).done).toBe(true);
});
