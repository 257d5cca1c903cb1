import { Agent, request as ask } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { type Product, runProduct, startProduct } from "../support/product.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { callGrpc } from "../entrances/scenarios/grpc-client.ts";
import { Chance } from "./simulation/chance.ts";
import { startCountingUpstream } from "./support/counting-upstream.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "./support/scale.ts";

/*
 * Callers who leave, or whose deadlines pass, at random moments: what is in the ledger is at least what providers have
 * generated for them by then, and a budget pays for no more than one request beyond itself.
 */

const DIALECTS = ["anthropic", "gemini", "openai"] as const;
const SETTLE_MS = 300;
/** As configured for the models. */
const MAX_TOKENS_PER_SECOND = 1_000;
/** No answer is faster: a provider needs a moment, on a busy machine a long one, to see that its connection is closed. */
const MAX_PACE = 400;
const MAX_TOKENS = 900;
/** Whoever leaves does so before. */
const PATIENCE_MS = 400;
const AT_ONCE = 200;
const PRICE = { input: 1, output: 10 };

/** One request, as its caller means to make it. */
interface Journey {
  readonly name: string;
  readonly dialect: (typeof DIALECTS)[number];
  readonly overGrpc: boolean;
  readonly isStream: boolean;
  readonly afterMs: number;
  /** Says its deadline, and does not just hang up. */
  readonly hasDeadline: boolean;
}

function drawJourney(chance: Chance, number: number): Journey {
  return {
    name: `request-${number}`,
    dialect: chance.pick(DIALECTS),
    overGrpc: chance.percent(50),
    isStream: chance.percent(50),
    afterMs: chance.between(20, PATIENCE_MS),
    hasDeadline: chance.percent(30),
  };
}

async function openWorld(): Promise<{ product: Product; generated: ReadonlyMap<string, number> }> {
  const chance = new Chance(String(seed()));
  const upstream = await startCountingUpstream(() => ({
    tokens: chance.between(1, MAX_TOKENS),
    tokensPerSecond: chance.between(100, MAX_PACE),
  }));
  onTestFinished(() => upstream.close());
  const providers = Object.fromEntries(
    DIALECTS.map((dialect) => {
      const base_url = dialect === "openai" ? `${upstream.url}/v1` : upstream.url;
      return [dialect, { dialect, base_url, allow_private: true, api_keys: ["correct-horse-battery-staple"] }];
    }),
  );
  const models = Object.fromEntries(
    DIALECTS.map((dialect) => [
      dialect,
      {
        provider: dialect,
        upstream_model: "counting",
        context_window: 100_000,
        max_output_tokens: 10_000,
        max_tokens_per_second: MAX_TOKENS_PER_SECOND,
        price: PRICE,
      },
    ]),
  );
  const timeouts = { settle_ms: SETTLE_MS };
  const product = await startProduct({ config: { providers, models, timeouts, limits: UNLIMITED } });
  onTestFinished(() => product.stop());
  return { product, generated: upstream.generated };
}

/** Makes the request, and leaves. Resolves with the status when it is over for the caller: 0 when it left. */
type Ask = (journey: Journey, key: string) => Promise<number>;

function callers({ url, grpcPort }: Product): Ask {
  const agent = new Agent({ keepAlive: true });
  const client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
  onTestFinished(() => {
    agent.destroy();
    client.close();
  });
  const overHttp: Ask = ({ name, dialect, isStream, afterMs, hasDeadline }, key) =>
    new Promise((resolve) => {
      const headers = {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-request-id": name,
        ...(hasDeadline && { "x-request-timeout-ms": String(afterMs) }),
      };
      const messages = [{ role: "user", content: name }];
      const call = ask(`${url}/v1/chat/completions`, { method: "POST", agent, headers }, (response) => {
        response.resume().once("close", () => resolve(response.complete ? response.statusCode! : 0));
      });
      call.once("error", () => resolve(0));
      if (!hasDeadline) setTimeout(() => call.destroy(), afterMs);
      call.end(JSON.stringify({ model: dialect, stream: isStream, max_tokens: MAX_TOKENS, messages }));
    });
  const overGrpc: Ask = async ({ name, dialect, isStream, afterMs, hasDeadline }, key) => {
    const content = [{ content: { case: "text" as const, value: name } }];
    const messages = [{ role: Role.USER, content }];
    const request = create(CompletionRequestSchema, { model: dialect, maxTokens: MAX_TOKENS, messages });
    const call = callGrpc({
      client,
      mode: isStream ? "stream" : "whole",
      bytes: Buffer.from(toBinary(CompletionRequestSchema, request)),
      metadata: { authorization: `Bearer ${key}`, "x-request-id": name },
      deadlineMs: hasDeadline ? afterMs : undefined,
    });
    if (!hasDeadline) setTimeout(() => call.leave(), afterMs);
    const { failure } = await call.reply;
    return failure === undefined ? 200 : failure.status === "RESOURCE_EXHAUSTED" ? 429 : 0;
  };
  return (journey, key) => (journey.overGrpc ? overGrpc : overHttp)(journey, key);
}

interface Row {
  readonly request_id: string;
  readonly outcome: string;
  readonly completion_tokens: number;
  readonly cost_micro_usd: number;
  readonly estimated: number;
}

/** The ledger, when all completions of these names are settled and folded into it. */
async function readLedger({ home }: Product, names: ReadonlyMap<string, number>): Promise<readonly Row[]> {
  const database = new DatabaseSync(join(home, "data", "parley.db"), { readOnly: true });
  onTestFinished(() => database.close());
  const select = "select request_id, outcome, completion_tokens, cost_micro_usd, estimated from completions";
  const statement = database.prepare(select);
  const read = (): readonly Row[] => statement.all() as unknown as readonly Row[];
  const missing = (): number => {
    const written = new Set(read().map((row) => row.request_id));
    return [...names.keys()].filter((name) => !written.has(name)).length;
  };
  await expect.poll(missing, { timeout: 30_000, interval: 500 }).toBe(0);
  return read();
}

async function inTurns<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

describe("completions whose caller has left", () => {
  it(
    "are in the ledger for no less than what was generated",
    async () => {
      const count = scale(20_000, 100_000);
      const { product, generated } = await openWorld();
      const leave = callers(product);
      const chance = new Chance(`${seed()}/callers`);
      const journeys = Array.from({ length: count }, (_, index) => drawJourney(chance, index));
      await inTurns(journeys, async (journey) => void (await leave(journey, product.firstKey)));
      const rows = await readLedger(product, generated);
      const booked = new Map(rows.map((row) => [row.request_id, row]));
      const missing = [...generated].filter(([name, tokens]) => (booked.get(name)?.completion_tokens ?? 0) < tokens);
      for (const [name, tokens] of missing.slice(0, 5)) console.error(name, tokens, booked.get(name));
      const left = rows.filter(({ outcome }) => outcome !== "served");
      expect(booked.size).toBe(rows.length);
      const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);
      const made = sum(generated.values());
      figure({ name: "completions whose callers left", value: left.length, unit: "", atLeast: count / 2 });
      const counted = left.filter(({ estimated }) => estimated === 0).length;
      figure({ name: "of these counted by the provider in the time to settle", value: counted, unit: "", atLeast: 1 });
      figure({ name: "booked by their bound", value: left.length - counted, unit: "", atLeast: 1 });
      figure({ name: "booked for less than was generated", value: missing.length, unit: "", atMost: 0 });
      figure({ name: "tokens that the upstream generated", value: made, unit: "", atLeast: 1 });
      const tokens = sum(rows.map(({ completion_tokens }) => completion_tokens));
      figure({
        name: "tokens in the ledger for each of these",
        value: Number((tokens / made).toFixed(2)),
        unit: "",
        atLeast: 1,
      });
    },
    timeLimit(180, 900),
  );

  it(
    "are never paid for by a budget beyond one of them",
    async () => {
      const { product, generated } = await openWorld();
      const { output, ending } = runProduct("keys create --name a --budget 0.3 --json".split(" "), product);
      await ending;
      const { key } = JSON.parse(output.stdout) as { key: string };
      const leave = callers(product);
      const chance = new Chance(`${seed()}/budget`);
      let refused = 0;
      const journeys = Array.from({ length: scale(1_500, 5_000) }, (_, index) => drawJourney(chance, index));
      await inTurns(journeys, async (journey) => {
        if ((await leave(journey, key)) === 429) refused += 1;
      });
      const rows = await readLedger(product, generated);
      expect(rows.length).toBeGreaterThan(0);
      const spent = rows.reduce((total, { cost_micro_usd }) => total + cost_micro_usd, 0);
      const billed = [...generated.values()].reduce((total, tokens) => total + tokens * PRICE.output, 0);
      const bound = MAX_TOKENS * PRICE.output + 1_000;
      figure({ name: "micro-USD booked on a budget of 300000", value: spent, unit: "", atMost: 300_000 + bound });
      figure({ name: "micro-USD billed on a budget of 300000", value: billed, unit: "", atMost: 300_000 + bound });
      figure({ name: "requests that the spent budget refused", value: refused, unit: "", atLeast: 1 });
    },
    timeLimit(120, 400),
  );
});
