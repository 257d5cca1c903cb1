import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { fixtureModels, requestOf } from "./support/fixture-models.ts";
import { type Json, readScenarios, type Scenario } from "./support/fixtures.ts";
import { normalStream, normalWhole } from "./support/normal-form.ts";
import { startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

interface Difference {
  readonly reason: string;
  /** What the files say, as compact JSON, and what we do in its place. */
  readonly instead: readonly [theirs: string, ours: string];
}

/** Where the interface document, its decisions or the contract win over a fixture. */
const DIFFERENCES: Readonly<Record<string, Difference>> = {
  "05-anthropic-tool-results": {
    reason: "a text and a list of one text are the same message in the contract, and go out in the shorter form",
    instead: ['"content":[{"type":"text","text":"12:00"}]', '"content":"12:00"'],
  },
  "16-anthropic-stream-truncated": {
    reason: "the failure table has one code for every answer that cannot be used",
    instead: ['"upstream_stream_truncated"', '"upstream_invalid_response"'],
  },
  "26-gemini-image-out": {
    reason: "usage says how many tokens were pictures, because they have a price of their own",
    instead: ['{"reasoning_tokens":200}', '{"reasoning_tokens":200,"image_tokens":1120}'],
  },
  "27-gemini-image-out-stream": {
    reason: "as 26",
    instead: ['{"reasoning_tokens":0}', '{"reasoning_tokens":0,"image_tokens":2580}'],
  },
  "52-gateway-error-n": {
    reason: "the failure table is a closed list of codes, and a 400 of ours has none",
    instead: ['"unsupported_value"', "null"],
  },
};

/** Compared by itself below: the list has more fields than OpenAI's. */
const MODELS_LIST = "50-gateway-models-list";

const DELIVERIES = [
  ["one write", Infinity],
  ["7-byte writes", 7],
  ["1-byte writes", 1],
] as const;

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  gateway = await startTestGateway({
    config: { retries: { base_ms: 0, cap_ms: 0 }, breaker: { failures: 1000 } },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Sends the scenario's bytes in pieces of a size, each in a write of its own. */
async function serve({ response }: UpstreamExchange, scenario: Scenario, pieceBytes: number): Promise<void> {
  const { meta, upstreamResponse: bytes = Buffer.alloc(0) } = scenario;
  const type = meta.stream && (meta.upstream_status ?? 200) === 200 ? "text/event-stream" : "application/json";
  response.writeHead(meta.upstream_status ?? 200, {
    "content-type": type,
    "content-length": bytes.length,
    ...meta.upstream_headers,
  });
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

interface Got {
  readonly response: Response;
  readonly text: string;
  /** What the upstream was sent. */
  readonly sent: UpstreamExchange | undefined;
}

async function play(scenario: Scenario, pieceBytes: number): Promise<Got> {
  await configure(scenario);
  answer = (exchange) => serve(exchange, scenario, pieceBytes);
  const before = upstream.exchanges.length;
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
    body: JSON.stringify(requestOf(scenario)),
  });
  return { response, text: await response.text(), sent: upstream.exchanges[before] };
}

async function configure(scenario: Scenario): Promise<void> {
  // Without its models in between, an upstream model would still rest after the run before.
  await gateway.configure({ models: {} });
  await gateway.configure(fixtureModels(upstream.url, scenario));
}

/** The scenario with what we do in place of what its files say. */
function withDifference(scenario: Scenario): Scenario {
  const { instead } = DIFFERENCES[scenario.name] ?? {};
  if (instead === undefined) return scenario;
  const { upstreamRequest, expected } = scenario;
  const before = JSON.stringify({ upstreamRequest, whole: "whole" in expected ? expected.whole : undefined });
  const stream = "stream" in expected ? expected.stream : undefined;
  const after = JSON.parse(before.replace(...instead)) as { upstreamRequest?: Json; whole?: Json };
  const streamAfter = stream?.replace(...instead);
  if (JSON.stringify(after) === before && streamAfter === stream) throw new Error(`${scenario.name} has no difference`);
  return {
    ...scenario,
    upstreamRequest: after.upstreamRequest,
    expected: streamAfter === undefined ? { whole: after.whole! } : { stream: streamAfter },
  };
}

const SCENARIOS = readScenarios();

describe.each(SCENARIOS.filter(({ name }) => name !== MODELS_LIST).map((given) => [given.name, given] as const))(
  "%s",
  (_, given) => {
    it.each(DELIVERIES)("sends and gives what it should, with the upstream answering in %s", async (__, pieceBytes) => {
      const scenario = withDifference(given);
      const { meta, upstreamRequest, upstreamResponse, expected } = scenario;
      const { response, text, sent } = await play(scenario, pieceBytes);
      const sentBody = upstreamRequest && (JSON.parse(sent?.body ?? "null") as unknown);
      expect(sentBody).toEqual(upstreamRequest);
      expect(sent?.request.headers ?? {}).toMatchObject(meta.upstream_request_headers ?? {});
      expect(sent?.request.url).toBe(meta.upstream_path);

      const fromUpstream = upstreamResponse?.toString() ?? "";
      const [got, wanted] =
        "stream" in expected
          ? [normalStream(text, fromUpstream), normalStream(expected.stream, fromUpstream)]
          : [normalWhole(JSON.parse(text) as Json, fromUpstream), normalWhole(expected.whole, fromUpstream)];
      expect(got).toEqual(wanted);
      expect(response.status).toBe(meta.expected_status ?? 200);
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
      for (const [name, value] of Object.entries(meta.expected_headers ?? {}))
        expect(response.headers.get(name), name).toBe(value);
    });
  },
);

describe("the list of models", () => {
  it("has the expected models, with more said about each", async () => {
    const scenario = SCENARIOS.find(({ name }) => name === MODELS_LIST)!;
    await configure(scenario);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/models`, { headers });
    const { object, data } = (await response.json()) as { object: string; data: { id: string }[] };
    const { whole } = scenario.expected as unknown as { whole: { object: string; data: { id: string }[] } };
    const listed = data.filter(({ id }) => whole.data.some((model) => model.id === id));
    expect({ object, data: listed }).toMatchObject(whole);
  });
});
