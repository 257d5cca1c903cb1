import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type CallId, drawCallPlan, goodPlan } from "../../support/faults/call-plan.ts";
import { type FaultServer, startFaultServer } from "../../support/faults/fault-server.ts";
import { findFreePort } from "../../support/free-port.ts";
import { makeHome, type Product, startProduct } from "../../support/product.ts";
import { type CallerPlan, CLIENTS, DEAD_MODEL, MODELS, plainCaller, SPARE_MODEL, WIRES } from "./caller-plan.ts";
import { type Case, type Difference, judge } from "./judge.ts";
import { auditEntry, type Books, MAX_OUTPUT_TOKENS, PRICE, readBooks } from "./ledger.ts";
import { requestIdOf } from "./http-callers.ts";
import { type Asked, openClients } from "./clients.ts";

/** Requests from this number on have no faults. */
const GOOD = 1_000_000_000;

/** Concurrency limit of the account. */
const PLACES = 64;

const TIMEOUT = { timeout: 20_000, interval: 50 };

export interface SocketRun {
  readonly seed: number;
  readonly callers: readonly CallerPlan[];
  /** Completions in flight at once. */
  readonly atOnce: number;
  /** Default: `drawCallPlan`. */
  readonly planOf?: (id: CallId) => ReturnType<typeof drawCallPlan>;
}

/** Results of a run. */
export interface Outcome {
  readonly cases: readonly Case[];
  readonly differences: readonly Difference[];
  /** Number of upstream calls. */
  readonly calls: number;
  readonly products: { readonly descriptorsBefore: number; readonly descriptorsAfter: number };
}

/**
 * Runs callers against the product, with a fault server as every provider, and compares caller, upstream and ledger.
 */
export async function runSockets({ seed, callers, atOnce, planOf = drawCallPlan }: SocketRun): Promise<Outcome> {
  const upstream = await startFaultServer({ seed, planOf: (id) => (id.request >= GOOD ? slowGood(id) : planOf(id)) });
  const home = makeHome();
  const product = await startProduct({ home, config: configOf(upstream.url, await findFreePort()) });
  try {
    await warmUp(product, upstream, seed);
    const descriptorsBefore = countDescriptors(product);
    const asked = await askAll(product, upstream, { callers, atOnce });
    await findLeakedPlaces(product, upstream, seed);
    await settle(product, upstream, descriptorsBefore);
    const descriptorsAfter = countDescriptors(product);
    product.signal("SIGTERM");
    const { code } = await product.ending;
    expect(code).toBe(0);
    const books = await readBooks(join(home, "data"));
    const cases = asked.map((each) => ({ ...each, calls: upstream.calls(each.plan.request) }));
    return {
      cases,
      differences: [...cases.flatMap(judge), ...auditAll(cases, books), ...readLog(product.output.stderr)],
      calls: cases.reduce((sum, { calls }) => sum + calls.length, 0),
      products: { descriptorsBefore, descriptorsAfter },
    };
  } finally {
    await product.stop();
    await upstream.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Long enough to occupy all slots at the same time. */
function slowGood(id: CallId): ReturnType<typeof drawCallPlan> {
  return { ...goodPlan(id), delayMs: id.request >= GOOD + PLACES ? 0 : 2_000 };
}

function configOf(url: string, deadPort: number): object {
  const paths = { anthropic: "", gemini: "", openai: "/v1" } as const;
  const providers = Object.fromEntries(
    WIRES.map((wire) => [
      wire,
      { dialect: wire, base_url: `${url}${paths[wire]}`, allow_private: true, api_keys: ["provider-secret"] },
    ]),
  );
  const model = (id: string, provider: string, capabilities?: object) => [
    id,
    {
      provider,
      upstream_model: id,
      max_output_tokens: MAX_OUTPUT_TOKENS,
      price: PRICE,
      ...(capabilities && { capabilities }),
    },
  ];
  return {
    timeouts: { connect_ms: 2_000, first_content_ms: 5_000, idle_ms: 4_000, total_ms: 20_000 },
    retries: { base_ms: 10, cap_ms: 50 },
    breaker: { failures: 20, open_ms: 1, max_open_ms: 20 },
    shutdown: { drain_ms: 10_000 },
    limits: {
      requests_per_minute: "unlimited",
      tokens_per_minute: "unlimited",
      concurrent_requests: PLACES,
      monthly_budget_usd: 100_000,
    },
    providers: {
      ...providers,
      [DEAD_MODEL]: { dialect: "openai", base_url: `http://127.0.0.1:${deadPort}/v1`, allow_private: true },
    },
    models: Object.fromEntries([
      ...MODELS.map((id) => {
        const [wire = "", index] = id.split("-");
        // The first request of each dialect is streamed in any case.
        return model(id, wire, index === "0" ? { stream_above: 0 } : undefined);
      }),
      model(DEAD_MODEL, DEAD_MODEL),
      model(SPARE_MODEL, "openai"),
    ]),
  };
}

/** Warms up the process, so that its permanent resources are open. */
async function warmUp(product: Product, upstream: FaultServer, seed: number): Promise<void> {
  const clients = openClients(product, upstream);
  let request = GOOD + PLACES;
  for (const client of CLIENTS) {
    for (const streamed of [false, true]) {
      const { reply } = await clients.ask({ ...plainCaller(seed, request++), client, streamed });
      expect(reply).toMatchObject({ end: "complete", breaches: [] });
    }
  }
  await clients.close();
  upstream.closeIdle();
  await expect.poll(() => upstream.openSockets, TIMEOUT).toBe(0);
  // Callers' connections close with a delay.
  let before = -1;
  await expect
    .poll(
      () => {
        const count = countDescriptors(product);
        const isSteady = count === before;
        before = count;
        return isSteady;
      },
      { timeout: 20_000, interval: 500 },
    )
    .toBe(true);
}

async function askAll(
  product: Product,
  upstream: FaultServer,
  { callers, atOnce }: Pick<SocketRun, "callers" | "atOnce">,
): Promise<Asked[]> {
  const clients = openClients(product, upstream);
  const asked: Asked[] = [];
  const rest = callers.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const plan of rest) asked.push(await clients.ask(plan));
    }),
  );
  await clients.close();
  return asked;
}

/** Checks that the whole concurrency limit is available: no slot has leaked. One more request is refused. */
async function findLeakedPlaces(product: Product, upstream: FaultServer, seed: number): Promise<void> {
  const clients = openClients(product, upstream);
  await expect.poll(() => upstream.openCalls, TIMEOUT).toBe(0);
  const plans = Array.from({ length: PLACES }, (_, index) => plainCaller(seed, GOOD + index));
  const all = Promise.all(plans.map((plan) => clients.ask(plan)));
  await Promise.race([all, Promise.all(plans.map(({ request }) => upstream.called(request)))]);
  const { reply } = await clients.ask({ ...plainCaller(seed, GOOD + PLACES + 100), client: "raw" });
  expect((await all).map((each) => each.reply)).toEqual(plans.map(() => expect.objectContaining({ end: "complete" })));
  expect(reply).toMatchObject({ end: "failed", failure: { http: 429 } });
  await clients.close();
}

async function settle(product: Product, upstream: FaultServer, descriptors: number): Promise<void> {
  await expect.poll(() => upstream.openCalls, TIMEOUT).toBe(0);
  upstream.closeIdle();
  await expect.poll(() => upstream.openSockets, TIMEOUT).toBe(0);
  await expect.poll(() => countActiveCalls(product), TIMEOUT).toBe(0);
  await expect.poll(() => countDescriptors(product), TIMEOUT).toBeLessThanOrEqual(descriptors);
}

async function countActiveCalls({ operationsUrl }: Product): Promise<number> {
  const response = await fetch(`${operationsUrl}/readyz`, { headers: { connection: "close" } });
  return ((await response.json()) as { readonly active_calls: number }).active_calls;
}

function countDescriptors({ pid }: Product): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function auditAll(cases: readonly Case[], { entries, spent, holds, costMicroUsd }: Books): Difference[] {
  const each = cases.flatMap((seen) => auditEntry(seen, entries.get(requestIdOf(seen.plan.request)) ?? []));
  const all: string[] = [];
  if (holds > 0) all.push(`${holds} holds of budgets are left`);
  if (spent.length === 0) all.push("no subject has spent anything");
  for (const { subject, spentMicroUsd, heldMicroUsd } of spent) {
    if (heldMicroUsd !== 0) all.push(`${heldMicroUsd} are still held of ${subject}`);
    if (spentMicroUsd !== costMicroUsd) all.push(`${subject} has spent ${spentMicroUsd}, its entries ${costMicroUsd}`);
  }
  return [...each, ...all.map((what) => ({ kind: "ledger" as const, request: -1, what }))];
}

/** Texts that the product's log must not contain. */
function readLog(stderr: string): Difference[] {
  return stderr
    .split("\n")
    .filter((line) => line.includes('"outcome":"internal"') || /"level":"fatal"|"msg":"unhandled/.test(line))
    .map((what) => ({ kind: "end", request: -1, what }));
}
