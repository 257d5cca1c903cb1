import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { openRedisRates } from "../../src/limits/redis.ts";
import { createSharedRates, type RatesState, type SharedRates } from "../../src/limits/shared-rates.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { startRedis } from "../support/redis.ts";

const BURST_MS = 60_000;
const key = subjectOf("key:1", { requestsPerMinute: 30 });
/** A time limit that is never exceeded. */
const wide = subjectOf("key:2", { requestsPerMinute: 1_000_000 });

async function openReplica(url: string, replica: string, changes: RatesState[] = []): Promise<SharedRates> {
  const remote = await openRedisRates({ url, clock: systemClock, burstMs: BURST_MS });
  const onChange = (state: RatesState): void => void changes.push(state);
  const rates = createSharedRates({ remote, clock: systemClock, burstMs: BURST_MS, replica, onChange });
  onTestFinished(() => rates.close());
  return rates;
}

/** Three replicas that have registered with each other. */
async function openFleet(url: string): Promise<readonly SharedRates[]> {
  const fleet = await Promise.all(["one", "two", "three"].map((replica) => openReplica(url, replica)));
  for (let round = 0; round < 2; round += 1)
    for (const [index, rates] of fleet.entries())
      await rates.renew({ replica: ["one", "two", "three"][index]!, held: [] });
  return fleet;
}

async function latencyMs(rates: SharedRates): Promise<number> {
  const beganMs = performance.now();
  expect((await rates.take(demandOf([wide]))).admitted).toBe(true);
  return performance.now() - beganMs;
}

async function latenciesMs(rates: SharedRates, count: number): Promise<number[]> {
  const latencies: number[] = [];
  for (let index = 0; index < count; index += 1) latencies.push(await latencyMs(rates));
  return latencies;
}

async function admittedBy(fleet: readonly SharedRates[], eachAsks: number): Promise<number> {
  const decisions = fleet.flatMap((rates) => Array.from({ length: eachAsks }, () => rates.take(demandOf([key]))));
  return (await Promise.all(decisions)).filter((decision) => decision.admitted).length;
}

describe("while Redis is unavailable", () => {
  it("while hung, it delays five requests by its time limit and no others, and is used again within five seconds", async () => {
    const redis = await startRedis();
    const changes: RatesState[] = [];
    const rates = await openReplica(redis.url, "one", changes);
    await latenciesMs(rates, 20);
    redis.freeze();
    const first = await latenciesMs(rates, 5);
    const later = await latenciesMs(rates, 500);
    // The median, as the machine may be busy.
    expect(first.toSorted((a, b) => a - b)[2]).toBeLessThan(150);
    expect(later.toSorted((a, b) => a - b)[495]).toBeLessThan(40);
    expect(rates.state()).toBe("local");
    redis.thaw();
    await expect.poll(() => rates.state(), { timeout: 5000 }).toBe("shared");
    expect(changes).toEqual(["local", "shared"]);
    await latenciesMs(rates, 1);
  });

  it("after it hung for five seconds, with all connections closed, it is used again within five", async () => {
    // A password adds a command before a connection is ready.
    const redis = await startRedis(["--requirepass", "secret"]);
    const rates = await openReplica(redis.url.replace("//", "//:secret@"), "one");
    redis.freeze();
    const untilMs = performance.now() + 5000;
    await expect.poll(async () => (await latencyMs(rates)) >= 0 && performance.now() > untilMs).toBe(true);
    expect(rates.state()).toBe("local");
    redis.thaw();
    await expect.poll(() => rates.state(), { timeout: 5000 }).toBe("shared");
  });

  it.each(["killed", "hung"] as const)("while %s, the replicas together admit their local shares", async (how) => {
    const redis = await startRedis();
    const fleet = await openFleet(redis.url);
    if (how === "killed") await redis.kill();
    else redis.freeze();
    await Promise.all(fleet.map((rates) => latenciesMs(rates, 6)));
    const beganMs = performance.now();
    const admitted = await admittedBy(fleet, 200);
    // One request refills each 6 s in each of three replicas.
    expect(admitted).toBeGreaterThanOrEqual(30);
    expect(admitted).toBeLessThanOrEqual(30 + 3 * Math.ceil((performance.now() - beganMs) / 6000));
    expect(fleet.map((rates) => rates.state())).toEqual(["local", "local", "local"]);
    if (how === "killed") await redis.start();
    else redis.thaw();
    for (const rates of fleet) await expect.poll(() => rates.state(), { timeout: 5000 }).toBe("shared");
    expect(await admittedBy(fleet, 200)).toBeLessThanOrEqual(31);
  });

  it("at the start of a process, each replica uses the whole limit", async () => {
    const redis = await startRedis();
    await redis.kill();
    const rates = await openReplica(redis.url, "one");
    expect(await admittedBy([rates], 100)).toBe(30);
  });

  it("while loading its data, it counts as unavailable", async () => {
    const server = createServer((socket) => {
      // One error per command: each begins with the number of its arguments.
      socket.on("data", (data) => {
        const commands = data.toString().match(/(^|\r\n)\*\d+\r\n/g) ?? [];
        socket.write("-LOADING Redis is loading the dataset in memory\r\n".repeat(commands.length));
      });
      socket.on("error", () => undefined);
      onTestFinished(() => void socket.destroy());
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const rates = await openReplica(`redis://127.0.0.1:${port}`, "one");
    await latenciesMs(rates, 5);
    expect(rates.state()).toBe("local");
  });
});
