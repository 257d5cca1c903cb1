import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { DELIVERIES, formatFixtureModels, readFormatScenarios, serveScenario } from "./support/format-fixtures.ts";
import { startUpstream, type Upstream } from "./support/upstream.ts";

/* The scenario of a picture in OpenAI's format, made by a provider of Gemini's dialect. */

const [SCENARIO] = readFormatScenarios("i01");

let upstream: Upstream;
let gateway: TestGateway;
let pieceBytes: number;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => void serveScenario(exchange, SCENARIO!, pieceBytes));
  gateway = await startTestGateway({ config: formatFixtureModels(upstream.url) });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

it.each(DELIVERIES)(
  "i01-images-generate sends and gives what it should, with the upstream answering in %s",
  async (_, bytes) => {
    pieceBytes = bytes;
    const { meta, callerRequest, upstreamRequest, expected } = SCENARIO!;
    const reply = await fetch(`http://127.0.0.1:${gateway.httpPort}${meta.path}`, {
      method: meta.method,
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify(callerRequest),
    });
    const { parley, created, ...answer } = (await reply.json()) as Readonly<Record<string, unknown>>;
    const { created: _created, ...wanted } = (expected as { readonly whole: Readonly<Record<string, unknown>> }).whole;
    const sent = upstream.exchanges.at(-1)!;
    expect([reply.status, sent.request.url]).toEqual([meta.expected_status, meta.upstream_path]);
    expect(JSON.parse(sent.body)).toEqual(upstreamRequest);
    expect(answer).toEqual(wanted);
    expect([typeof created, parley]).toMatchObject(["number", { omitted: [] }]);
  },
);
