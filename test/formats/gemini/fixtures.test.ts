import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startUpstream, type Upstream, type UpstreamExchange } from "../../product/support/upstream.ts";
import { startTestGateway, type TestGateway } from "../../support/gateway.ts";
import { withoutSeals } from "../../support/seals.ts";

type Json = Readonly<Record<string, unknown>>;

/** One scenario: what the caller sends and gets, and the exchange with the provider between them. */
interface FormatScenario {
  readonly name: string;
  readonly meta: {
    readonly method: string;
    readonly path: string;
    readonly stream: boolean;
    readonly upstream_path?: string;
    readonly expected_status: number;
  };
  readonly request: Json | undefined;
  readonly upstreamRequest: Json | undefined;
  readonly upstreamResponse: Buffer | undefined;
  readonly expected: unknown;
}

const FOLDER = new URL("../../fixtures/formats/", import.meta.url);

function readScenario(name: string): FormatScenario {
  const read = (file: string): Buffer | undefined => {
    const url = new URL(`${name}/${file}`, FOLDER);
    return existsSync(url) ? readFileSync(url) : undefined;
  };
  const json = (file: string): Json | undefined => {
    const bytes = read(file);
    return bytes && (JSON.parse(bytes.toString()) as Json);
  };
  return {
    name,
    meta: json("meta.json") as unknown as FormatScenario["meta"],
    request: json("caller-request.json"),
    upstreamRequest: json("upstream-request.json"),
    upstreamResponse: read("upstream-response.json") ?? read("upstream-response.sse"),
    expected: json("expected-reply.json") ?? eventsOf(read("expected-reply.sse")?.toString() ?? ""),
  };
}

const SCENARIOS = readdirSync(FOLDER)
  .filter((name) => /^g\d\d-/.test(name))
  .map(readScenario);

const DELIVERIES = [
  ["one write", Infinity],
  ["7-byte writes", 7],
  ["1-byte writes", 1],
] as const;

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void | Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const at = { base_url: upstream.url, api_keys: ["credential"], allow_private: true };
  const seesText = { input: ["text", "image"], output: ["text"] };
  gateway = await startTestGateway({
    config: {
      providers: { a: { dialect: "anthropic", ...at }, g: { dialect: "gemini", ...at } },
      models: {
        "fx-g": {
          provider: "g",
          upstream_model: "gemini-3-flash",
          context_window: 1_048_576,
          max_output_tokens: 65_536,
          modalities: seesText,
        },
        "fx-a": {
          provider: "a",
          upstream_model: "claude-sonnet-4-5",
          context_window: 200_000,
          max_output_tokens: 64_000,
          modalities: seesText,
        },
        "fx-gi": {
          provider: "g",
          upstream_model: "gemini-3-pro-image",
          context_window: 65_536,
          max_output_tokens: 32_768,
          modalities: { input: ["text", "image"], output: ["text", "image"] },
          capabilities: { image_options: true },
        },
      },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  upstream.exchanges.length = 0;
});

/** Sends the scenario's bytes in pieces of a size, each in a write of its own. */
async function serve({ response }: UpstreamExchange, { meta, upstreamResponse }: FormatScenario, pieceBytes: number) {
  const bytes = upstreamResponse ?? Buffer.alloc(0);
  response.writeHead(200, { "content-type": meta.stream ? "text/event-stream" : "application/json" });
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

function ask({ meta, request }: FormatScenario): Promise<Response> {
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

describe.each(
  SCENARIOS.filter(({ upstreamResponse }) => upstreamResponse !== undefined).map((one) => [one.name, one] as const),
)("%s", (_, scenario) => {
  it.each(DELIVERIES)("sends and gives what it should, with the upstream answering in %s", async (_name, bytes) => {
    answer = (exchange) => serve(exchange, scenario, bytes);
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

const named = (name: string): FormatScenario => SCENARIOS.find((each) => each.name === name)!;

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
