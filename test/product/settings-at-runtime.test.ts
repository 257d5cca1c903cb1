import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ConfigurationSection as Section,
  ConfigurationService,
  EntryOrigin,
  EntryState,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { signUpFirst } from "../support/signed-up.ts";
import {
  answerJson,
  answerText,
  localModel,
  startUpstream,
  type Upstream,
  type UpstreamExchange,
} from "./support/upstream.ts";
import { postChat } from "../support/post-json.ts";
import { runBeside } from "../support/cli.ts";

/** A change is promised within a second; the rest is for the machine's other work. */
const SOON = { timeout: 5_000, interval: 20 };

let upstream: Upstream;
/** What it does with a request. */
let answer: (exchange: UpstreamExchange) => void;

beforeAll(async () => void (upstream = await startUpstream((exchange) => answer(exchange))));
afterAll(() => upstream.close());

const hi = (exchange: UpstreamExchange): void => answerText(exchange, "hi");

interface Asked {
  readonly status: number;
  readonly limit: number;
  readonly remaining: number;
  readonly message: string;
}

async function ask({ url, firstKey }: Product): Promise<Asked> {
  const response = await postChat(url, firstKey, { model: "local/test", max_tokens: 10 });
  const { error } = (await response.json()) as { readonly error?: { readonly message: string } };
  const numberOf = (name: string): number => Number(response.headers.get(`x-ratelimit-${name}-requests`) ?? NaN);
  return {
    status: response.status,
    limit: numberOf("limit"),
    remaining: numberOf("remaining"),
    message: error?.message ?? "",
  };
}

/** The service for the first administrator. */
async function administratorOf({ url }: Product): Promise<Client<typeof ConfigurationService>> {
  return createClient(ConfigurationService, await signUpFirst(url));
}

describe.each([1, 2])("with %i workers", (workers) => {
  let product: Product;
  let service: Client<typeof ConfigurationService>;
  const config = (limits: object = {}): object => ({ ...localModel(upstream.url), workers, limits });

  beforeAll(async () => {
    product = await startProduct({ config: config() });
    service = await administratorOf(product);
  });
  afterAll(() => product?.stop());

  async function set(...changes: readonly (readonly [section: Section, name: string, entry: string])[]): Promise<void> {
    const { latestVersion: expectedVersion } = await service.listEntries({});
    const { applied } = await service.changeEntries({
      expectedVersion,
      changes: changes.map(([section, name, entry]) => ({ section, name, entry })),
    });
    expect(applied).toBe(true);
  }

  const cli = (...argv: readonly string[]): Promise<string> => runBeside(product, argv);
  const limitSoon = (limit: number) => expect.poll(async () => (await ask(product)).limit, SOON).toBe(limit);

  it("a lowered limit admits what it allows, counted by all; a raised one more; and back", async () => {
    answer = hi;
    expect(await ask(product)).toMatchObject({ status: 200, limit: 600 });
    await set([Section.LIMITS, "requests_per_minute", "4"]);
    // The first one may have been asked of a worker that does not have it yet.
    await expect.poll(async () => (await ask(product)).limit, SOON).toBe(4);
    const more = await Promise.all(Array.from({ length: 10 }, () => ask(product)));
    expect(more.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(3);
    const refused = await ask(product);
    expect(refused).toMatchObject({ status: 429, limit: 4, remaining: 0 });
    expect(refused.message).toContain("4 requests per minute");
    await set([Section.LIMITS, "requests_per_minute", "6000"]);
    await expect.poll(async () => (await ask(product)).status, SOON).toBe(200);
    expect(await ask(product)).toMatchObject({ status: 200, limit: 6000 });
    const { latestVersion } = await service.listEntries({});
    await service.rollBack({ expectedVersion: latestVersion, version: latestVersion - 1n });
    await limitSoon(4);
    await cli("config", "set", "limits", "requests_per_minute", "--value", "unlimited");
    await expect.poll(async () => (await ask(product)).limit, SOON).toBeNaN();
  });

  it("calls in flight count towards a lowered limit of calls at a time, and end", async () => {
    const held: UpstreamExchange[] = [];
    answer = (exchange) => void held.push(exchange);
    const calls = [ask(product), ask(product)];
    await expect.poll(() => held.length, SOON).toBe(2);
    answer = hi;
    await cli("config", "set", "limits", "concurrent_requests", "--value", "2");
    await expect.poll(async () => (await ask(product)).message, SOON).toContain("2 requests at a time");
    hi(held[0]!);
    await expect.poll(async () => (await ask(product)).status, SOON).toBe(200);
    await cli("config", "set", "limits", "concurrent_requests", "--value", "unlimited");
    hi(held[1]!);
    for (const call of calls) expect((await call).status).toBe(200);
  });

  it("what is spent already counts against a budget that is set afterwards", async () => {
    answer = hi;
    await set([Section.LIMITS, "monthly_budget_usd", "0.000001"]);
    await expect
      .poll(async () => (await ask(product)).message, SOON)
      .toContain("of this account, 0.000001 USD, is spent");
    await set([Section.LIMITS, "monthly_budget_usd", "25"]);
    await expect.poll(async () => (await ask(product)).status, SOON).toBe(200);
    await set([Section.LIMITS, "monthly_budget_usd", ""]);
  });

  it("the failures that a circuit breaker needs, and the wait before a retry", async () => {
    answer = ({ response }) => answerJson(response, 500, { error: { message: "down" } });
    const callsOf = async (): Promise<number> => {
      const before = upstream.exchanges.length;
      await ask(product);
      return upstream.exchanges.length - before;
    };
    await set([Section.RETRIES, "cap_ms", "0"], [Section.RETRIES, "base_ms", "0"], [Section.BREAKER, "failures", "1"]);
    // Of each worker.
    await expect.poll(callsOf, SOON).toBe(0);
    answer = hi;
    await set([Section.BREAKER, "failures", "1000"], [Section.BREAKER, "open_ms", "1"]);
    await expect.poll(async () => (await ask(product)).status, { ...SOON, timeout: 10_000 }).toBe(200);
  });

  it("wrong values are refused with line and column, and what is for the file with the reason", async () => {
    const { latestVersion: expectedVersion } = await service.listEntries({});
    const violationsOf = async (name: string, entry: string, section = Section.LIMITS) => {
      const error = await service
        .changeEntries({ expectedVersion, changes: [{ section, name, entry }] })
        .catch((cause: unknown) => ConnectError.from(cause));
      return (error as ConnectError).findDetails(BadRequestSchema)[0]?.fieldViolations;
    };
    expect(await violationsOf("requests_per_minute", "many")).toMatchObject([
      { field: "changes[0].entry:1:1", description: expect.stringContaining("requests_per_minute: must be") },
    ]);
    expect(await violationsOf("cap_ms", "70000", Section.RETRIES)).toMatchObject([{ field: "changes[0].entry:1:1" }]);
    expect(await violationsOf("burst_seconds", "5")).toMatchObject([
      { field: "changes[0].entry:1:1", description: expect.stringContaining("needs a restart") },
    ]);
    await expect(cli("config", "set", "limits", "tokens_per_minute", "--value", "0")).rejects.toThrow(":1:1");
  });

  it("the file takes precedence over what is stored, and SIGHUP applies it", async () => {
    answer = hi;
    await set([Section.LIMITS, "requests_per_minute", ""]);
    await limitSoon(600);
    await set([Section.LIMITS, "requests_per_minute", "500"]);
    await limitSoon(500);
    product.writeConfig(config({ requests_per_minute: 700, burst_seconds: 30 }));
    product.signal("SIGHUP");
    await limitSoon(700);
    const { entries } = await service.listEntries({});
    const found = entries.filter(({ section, name }) => section === Section.LIMITS && name === "requests_per_minute");
    expect(found).toMatchObject([
      { origin: EntryOrigin.FILE, state: EntryState.IN_FORCE, entry: "700" },
      { origin: EntryOrigin.STORED, state: EntryState.OVERRIDDEN, entry: "500" },
    ]);
    await expect.poll(() => product.output.stdout + product.output.stderr).toContain('"sections":["burstMs"]');
    expect(product.output.stdout + product.output.stderr).not.toMatch(/"sections":\[[^\]]*limits/);
    product.writeConfig(config());
    product.signal("SIGHUP");
    await limitSoon(500);
  });
});
