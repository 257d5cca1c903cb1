import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { withoutSeals } from "../support/seals.ts";
import {
  DELIVERIES,
  formatFixtureModels,
  type FormatScenario,
  readFormatScenarios,
  serveScenario,
} from "./support/format-fixtures.ts";
import type { Json } from "./support/fixtures.ts";
import { answerJson, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/*
 * The scenarios of the Messages format through the running gateway: a caller's request, what the provider is asked, what it
 * answers, and what the caller gets.
 */

/** Where the contract, or a decision of the gateway, wins over the file. */
const INSTEAD: Readonly<Record<string, string>> = {
  "m14-server-tool": "a server tool is passed on to a provider that runs it",
};

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const { providers, models } = formatFixtureModels(upstream.url);
  const { "fx-a": first, ...others } = models as Readonly<Record<string, object>>;
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      providers,
      models: { "fx-a": { ...first, created: "2026-01-01" }, ...others },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

async function ask({ meta, callerRequest: request }: FormatScenario): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.httpPort}${meta.path}`, {
    method: meta.method,
    headers: { "x-api-key": gateway.key, "content-type": "application/json", ...meta.headers },
    ...(request !== undefined && { body: JSON.stringify(request) }),
  });
}

/** The events of a stream, with the deltas of a block joined, without what differs from run to run. */
function normalStream(text: string): unknown[] {
  const events: Json[] = [];
  for (const block of text.split("\n\n")) {
    if (block === "") continue;
    const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
    const event = normalWhole(JSON.parse(data) as Json) as Json;
    if (event["type"] !== name) throw new Error(`an event ${name} of the type ${String(event["type"])}`);
    if (name === "ping") continue;
    const last = events.at(-1);
    const both = last === undefined ? undefined : joined(last, event);
    if (both === undefined) events.push(event);
    else events[events.length - 1] = both;
  }
  return events;
}

/** Both events as one, when the second only adds to the text of the first. */
function joined(one: Json, other: Json): Json | undefined {
  const [first, second] = [one["delta"] as Json | undefined, other["delta"] as Json | undefined];
  if (first?.["type"] === undefined || first["type"] !== second?.["type"]) return undefined;
  const delta = Object.keys(first).map((key) => [
    key,
    key === "type" ? first[key] : `${String(first[key])}${String(second[key])}`,
  ]);
  return { ...one, delta: Object.fromEntries(delta) as Json };
}

function normalWhole(value: Json): unknown {
  const { parley: _, request_id: id, ...rest } = value;
  return JSON.parse(
    JSON.stringify(
      { ...rest, ...(id !== undefined && { request_id: typeof id === "string" && id.startsWith("req_") }) },
      (key, inner: unknown) => {
        if (key === "id" && typeof inner === "string" && inner.startsWith("msg_")) return "msg_FIXTURE";
        if (key === "message" && typeof inner === "object")
          return { ...inner, usage: { ...(inner as { usage: object }).usage, input_tokens: "estimated" } };
        if (key === "message" && typeof inner === "string") return "words";
        return inner;
      },
    ),
  );
}

/** A provider of the dialect gets the caller's own request: the files have texts as blocks there. */
function upstreamRequestOf({ meta, callerRequest, upstreamRequest }: FormatScenario): Json | undefined {
  const isOfDialect = meta.upstream_path === "/v1/messages";
  return isOfDialect ? { ...callerRequest, model: upstreamRequest!["model"] } : upstreamRequest;
}

const SCENARIOS = readFormatScenarios("m").filter(({ name }) => !(name in INSTEAD));
/** Compared by themselves below. */
const COUNT = "m11-count-tokens";
const MODELS = "m12-models";

describe.each(SCENARIOS.filter(({ name }) => name !== COUNT && name !== MODELS).map((one) => [one.name, one] as const))(
  "%s",
  (_, scenario) => {
    it.each(DELIVERIES)("sends and gives what it should, with the upstream answering in %s", async (_name, bytes) => {
      answer = (exchange) => serveScenario(exchange, scenario, bytes);
      const before = upstream.exchanges.length;
      const response = await ask(scenario);
      const text = withoutSeals(await response.text());
      expect(response.status).toBe(scenario.meta.expected_status);
      expect(response.headers.get("request-id")).toMatch(/^req_/);

      const sent = upstream.exchanges[before];
      expect(sent && JSON.parse(sent.body)).toEqual(upstreamRequestOf(scenario));
      expect(sent?.request.url).toBe(scenario.meta.upstream_path);

      const { expected } = scenario;
      expect("whole" in expected ? normalWhole(JSON.parse(text) as Json) : normalStream(text)).toEqual(
        "whole" in expected ? normalWhole(expected.whole) : normalStream(expected.stream),
      );
    });
  },
);

const STREAMS = readFormatScenarios("m").filter(({ final }) => final !== undefined);

it.each(STREAMS.map((one) => [one.name, one] as const))(
  "%s is put together by the official client as it should",
  async (_, scenario) => {
    answer = (exchange) => serveScenario(exchange, scenario, Infinity);
    const client = new Anthropic({
      baseURL: `http://127.0.0.1:${gateway.httpPort}`,
      apiKey: gateway.key,
      maxRetries: 0,
    });
    const message = await client.messages.stream(scenario.callerRequest as never).finalMessage();
    const said = JSON.parse(withoutSeals(JSON.stringify(message))) as Json;
    expect(normalWhole(said)).toMatchObject(normalWhole(scenario.final!) as object);
  },
);

it("m11-count-tokens gives a number, estimated where the provider does not count", async () => {
  const scenario = readFormatScenarios("m").find(({ name }) => name === COUNT)!;
  answer = ({ response }) => Promise.resolve(answerJson(response, 404, {}));
  const response = await ask(scenario);
  expect(response.status).toBe(200);
  const { input_tokens: tokens, ...rest } = (await response.json()) as { input_tokens: number };
  expect(tokens).toBeGreaterThan(0);
  expect(rest).toEqual({});
});

it("m12-models lists the models in this format for a caller that names its version", async () => {
  const scenario = readFormatScenarios("m").find(({ name }) => name === MODELS)!;
  const response = await ask(scenario);
  const { data, ...page } = (await response.json()) as { data: Json[] };
  expect(data.filter(({ id }) => id === "fx-a")).toEqual((scenario.expected as { whole: Json }).whole["data"]);
  expect(page).toMatchObject({ has_more: false });
});
