import { Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toModelList } from "../../src/formats/openai-chat/models.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import {
  askGrpc,
  askHttp,
  expectedOverGrpc,
  expectedOverHttp,
  type FixtureReply,
  listModels,
} from "./support/fixture-entrances.ts";
import { fixtureModels } from "./support/fixture-models.ts";
import { withoutSeals, withSeals } from "../support/seals.ts";
import { type Json, readScenarios, type Scenario } from "./support/fixtures.ts";
import { startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";
import { DELIVERIES } from "./support/format-fixtures.ts";

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

/** The status of the scenarios that fail over gRPC; the files only have HTTP's. */
const STATUSES: Readonly<Record<string, string>> = {
  "11-anthropic-error-429": "RESOURCE_EXHAUSTED UPSTREAM_RATE_LIMITED",
  "12-anthropic-error-529": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "13-anthropic-error-400-prompt-too-long": "INVALID_ARGUMENT CONTEXT_LENGTH_EXCEEDED",
  "14-anthropic-stream-first-error": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "15-anthropic-stream-mid-error": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "16-anthropic-stream-truncated": "INTERNAL UPSTREAM_PROTOCOL",
  "32-gemini-error-429": "RESOURCE_EXHAUSTED UPSTREAM_RATE_LIMITED",
  "33-gemini-error-bad-key": "INTERNAL UPSTREAM_REFUSED_US",
  "34-gemini-stream-mid-error": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "35-gemini-malformed-function-call": "INTERNAL UPSTREAM_PROTOCOL",
  "36-gemini-no-image": "INTERNAL UPSTREAM_PROTOCOL",
  "41-openai-compat-mid-error": "RESOURCE_EXHAUSTED UPSTREAM_RATE_LIMITED",
  "42-openai-compat-200-error-body": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "43-openai-error-insufficient-quota": "UNAVAILABLE UPSTREAM_UNAVAILABLE",
  "51-gateway-error-unknown-model": "NOT_FOUND MODEL_NOT_FOUND",
  "52-gateway-error-n": "INVALID_ARGUMENT INVALID_REQUEST",
};

/** Names of the configured providers by those of the files. */
const PROVIDERS: Readonly<Record<string, string>> = {
  anthropic: "anthropic",
  gemini: "google",
  "openai-compatible": "local",
};

/** Compared by itself below: the list has more fields than OpenAI's. */
const MODELS_LIST = "50-gateway-models-list";

let upstream: Upstream;
let gateway: TestGateway;
let client: Client;
let answer: (exchange: UpstreamExchange) => Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  gateway = await startTestGateway({
    config: { retries: { base_ms: 0, cap_ms: 0 }, breaker: { failures: 1000 } },
  });
  client = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure());
});

afterAll(async () => {
  client.close();
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

interface Entrance {
  readonly ask: (scenario: Scenario) => Promise<FixtureReply>;
  readonly expected: (scenario: Scenario) => FixtureReply;
}

const ENTRANCES: Readonly<Record<"HTTP" | "gRPC", Entrance>> = {
  HTTP: {
    ask: (scenario) => askHttp(`http://127.0.0.1:${gateway.httpPort}`, gateway.key, scenario),
    expected: expectedOverHttp,
  },
  gRPC: {
    ask: (scenario) => askGrpc(client, gateway.key, scenario),
    expected: (scenario) => expectedOverGrpc(scenario, STATUSES[scenario.name] ?? "OK"),
  },
};

const RUNS = (["HTTP", "gRPC"] as const).flatMap((entrance) =>
  DELIVERIES.map(([delivery, pieceBytes]) => ({ entrance, delivery, pieceBytes })),
);

async function configure(scenario: Scenario): Promise<void> {
  // Without its models in between, a circuit breaker would still be open from the run before.
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
    it.each(RUNS)(
      "sends and gives what it should over $entrance, with the upstream answering in $delivery",
      async ({ entrance, pieceBytes }) => {
        const scenario = withDifference(given);
        const { meta, upstreamRequest } = scenario;
        await configure(scenario);
        answer = (exchange) => serve(exchange, scenario, pieceBytes);
        const before = upstream.exchanges.length;
        const provider = PROVIDERS[meta.provider] ?? "";
        const clientRequest =
          scenario.clientRequest && withSeals(scenario.clientRequest, (state) => gateway.seal(provider, state));
        const reply = await ENTRANCES[entrance].ask({ ...scenario, clientRequest });

        const sent = upstream.exchanges[before];
        expect(upstreamRequest && (JSON.parse(sent?.body ?? "null") as unknown)).toEqual(upstreamRequest);
        expect(sent?.request.headers ?? {}).toMatchObject(meta.upstream_request_headers ?? {});
        expect(sent?.request.url).toBe(meta.upstream_path);

        const { said, status, facts } = ENTRANCES[entrance].expected(scenario);
        expect(JSON.parse(withoutSeals(JSON.stringify(reply.said ?? null)))).toEqual(said ?? null);
        expect(reply.status).toBe(status);
        expect(reply.facts).toMatchObject({ ...facts, "x-request-id": expect.stringMatching(/^req_/) as string });
      },
    );
  },
);

describe("the list of models", () => {
  const scenario = SCENARIOS.find(({ name }) => name === MODELS_LIST)!;
  const { whole } = scenario.expected as unknown as { whole: { object: string; data: { id: string }[] } };
  const expected = (id: string): boolean => whole.data.some((model) => model.id === id);

  it("has the expected models over HTTP, with more details of each", async () => {
    await configure(scenario);
    const headers = { authorization: `Bearer ${gateway.key}` };
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/models`, { headers });
    const { object, data } = (await response.json()) as { object: string; data: { id: string }[] };
    expect({ object, data: data.filter(({ id }) => expected(id)) }).toMatchObject(whole);
  });

  it("has the expected models over gRPC", async () => {
    await configure(scenario);
    const { models } = await listModels(client, gateway.key);
    const listed = toModelList(models.filter(({ id }) => expected(id)));
    expect(listed).toMatchObject(whole);
  });
});
