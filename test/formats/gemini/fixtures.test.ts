import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  DELIVERIES,
  formatFixtureModels,
  type FormatScenario,
  readFormatScenarios,
  serveScenario,
} from "../../product/support/format-fixtures.ts";
import type { Json } from "../../product/support/fixtures.ts";
import { startUpstream, type Upstream, type UpstreamExchange } from "../../product/support/upstream.ts";
import { startTestGateway, type TestGateway } from "../../support/gateway.ts";
import { withoutSeals } from "../../support/seals.ts";

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void | Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  gateway = await startTestGateway({
    config: { ...formatFixtureModels(upstream.url), retries: { base_ms: 0, cap_ms: 0 }, breaker: { failures: 1000 } },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  upstream.exchanges.length = 0;
});

function ask({ meta, callerRequest: request }: Pick<FormatScenario, "meta" | "callerRequest">): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.httpPort}${meta.path}`, {
    method: meta.method,
    headers: { "x-goog-api-key": gateway.key, "content-type": "application/json" },
    ...(request !== undefined && { body: JSON.stringify(request) }),
  });
}

/** The events of a stream: lines of data alone, each whole. */
function eventsOf(stream: string): unknown[] {
  expect(stream === "" || stream.endsWith("\n\n")).toBe(true);
  return stream
    .split("\n\n")
    .slice(0, -1)
    .map((event) => {
      expect(event).toMatch(/^data: [^\n]*$/);
      return JSON.parse(event.slice("data: ".length)) as unknown;
    });
}

/** Signatures decoded, so that they are compared by what they say. */
function decoded(key: string, value: unknown): unknown {
  if (key !== "thoughtSignature" || typeof value !== "string" || !value.startsWith("eyJ")) return value;
  return JSON.parse(Buffer.from(value, "base64").toString());
}

/** Without what differs each time, and what the files leave out. */
function normal(reply: unknown): unknown {
  const each = (object: Json): Json => {
    const { parley: _, responseId, ...rest } = object;
    return { ...rest, ...(responseId !== undefined && { responseId: "FIXTURE" }) };
  };
  const plain = JSON.parse(JSON.stringify(reply), decoded) as Json | Json[];
  return Array.isArray(plain) ? plain.map(each) : each(plain);
}

const SCENARIOS = readFormatScenarios("g").map(({ expected, ...scenario }) => ({
  ...scenario,
  expected: "whole" in expected ? expected.whole : eventsOf(expected.stream),
}));

describe.each(
  SCENARIOS.filter(({ upstreamResponse }) => upstreamResponse !== undefined).map((one) => [one.name, one] as const),
)("%s", (_, scenario) => {
  it.each(DELIVERIES)("sends and gives what it should, with the upstream answering in %s", async (_name, bytes) => {
    answer = (exchange) => serveScenario(exchange, scenario, bytes);
    const response = await ask(scenario);
    const text = withoutSeals(await response.text());
    expect(response.status).toBe(scenario.meta.expected_status);

    const [sent] = upstream.exchanges;
    expect(JSON.parse(sent?.body ?? "null")).toEqual(scenario.upstreamRequest);
    expect(sent?.request.url?.replace("?beta=true", "")).toBe(scenario.meta.upstream_path);

    const isEvents = scenario.meta.path.endsWith("alt=sse");
    expect(response.headers.get("content-type")).toMatch(isEvents ? /^text\/event-stream/ : /^application\/json$/);
    expect(normal(isEvents ? eventsOf(text) : JSON.parse(text))).toEqual(normal(scenario.expected));
  });
});

const named = (name: string) => SCENARIOS.find((each) => each.name === name)!;

describe("scenarios without an upstream answer", () => {
  it("g08-unknown-model is a google.rpc.Status", async () => {
    const scenario = named("g08-unknown-model");
    const response = await ask(scenario);
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as { error: { message: string; details: Json[] } };
    const { error: expected } = scenario.expected as { error: { details: Json[] } };
    expect(error).toMatchObject({
      code: 404,
      status: "NOT_FOUND",
      details: expect.arrayContaining([expect.objectContaining(expected.details[0]!)]) as unknown,
    });
    expect(error.message).toContain("nope");
  });

  it("g09-count-tokens counts at the provider, or estimates", async () => {
    answer = ({ response }) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"totalTokens":2}');
    };
    const scenario = named("g09-count-tokens");
    expect(await (await ask(scenario)).json()).toEqual(scenario.expected);
    answer = ({ response }) => void response.writeHead(503).end();
    const { totalTokens } = (await (await ask(scenario)).json()) as { totalTokens: number };
    expect(totalTokens).toBeGreaterThan(0);
  });

  it("g10-models lists models with the vendor's names of their facts", async () => {
    const scenario = named("g10-models");
    const { models } = (await (await ask(scenario)).json()) as { models: Json[] };
    const { models: expected } = scenario.expected as { models: Json[] };
    const listed = models.find(({ name }) => name === "models/fx-g");
    expect({ ...listed, description: "fx-g" }).toMatchObject(expected[0]!);
  });
});
