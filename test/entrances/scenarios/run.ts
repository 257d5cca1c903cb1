import { toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { Mode } from "../../../src/core/router.ts";
import { expect } from "vitest";
import { toOpenAiJson, toRequest } from "./ask.ts";
import { checkReply } from "./check-reply.ts";
import { checkTraces } from "./check-traces.ts";
import { callGrpc } from "./grpc-client.ts";
import { callHttp } from "./http-client.ts";
import type { RunningCall } from "./reply.ts";
import type { EntranceName, ModelName, Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** One scenario at one entrance in one mode. */
export interface Run {
  readonly world: World;
  readonly scenario: Scenario;
  readonly entrance: EntranceName;
  readonly mode: Mode;
  readonly requestId: string;
  /** The upstream names of the models. */
  readonly names: Readonly<Record<ModelName, string>>;
}

/** Everything that is waited for happens within this, on a slow machine too. */
export const PATIENCE = { timeout: 5000, interval: 5 } as const;

/** Plays a scenario and checks the reply, what the upstreams saw, and what is left behind. */
export async function playScenario(base: Omit<Run, "names">): Promise<void> {
  const { world, scenario } = base;
  const run: Run = { ...base, names: await world.prepare(scenario) };
  for (let past = 0; past < (scenario.before?.times ?? 0); past += 1) {
    const call = send(run, `${run.requestId}-before-${past}`);
    await call.reply;
    call.leave();
  }
  if (scenario.before !== undefined) await breakerIs(run, scenario.before.breaker);
  const callsBefore = countCalls(run);

  const call = send(run, run.requestId);
  try {
    if (scenario.leaves === undefined || scenario.leaves === "after the end") checkReply(run, await call.reply);
    else await leave(run, call, callsBefore);
    if (scenario.then.closesConnection === true && run.entrance === "http") {
      await expect.poll(() => call.closedByGateway(), PATIENCE).toBe(true);
    }
  } finally {
    call.leave();
  }
  if (scenario.then.breaker !== undefined) await breakerIs(run, scenario.then.breaker);
  await checkTraces(run, callsBefore);
}

async function leave(run: Run, call: RunningCall, callsBefore: Calls): Promise<void> {
  const arrived = (): number => total(countCalls(run)) - total(callsBefore);
  switch (run.scenario.leaves) {
    case "while sending":
      await expect.poll(async () => (await run.world.gateway.readiness()).active_calls, PATIENCE).toBe(1);
      break;
    case "in the first call":
      await expect.poll(arrived, PATIENCE).toBe(1);
      break;
    case "in the second call":
      await expect.poll(arrived, PATIENCE).toBe(2);
      break;
    default:
      await expect.poll(() => call.begun(), PATIENCE).toBe(true);
  }
  call.reply.catch(() => {});
  call.leave();
}

function send(run: Run, requestId: string): RunningCall {
  const { world, scenario, mode } = run;
  const { http, grpcBytes, deadlineMs } = scenario;
  const authorization = world.authorization[scenario.key ?? "any"];
  const headers = { "x-request-id": requestId, ...(authorization !== undefined && { authorization }) };
  const request = toRequest(scenario.ask);
  if (run.entrance === "grpc") {
    const bytes = grpcBytes ?? Buffer.from(toBinary(CompletionRequestSchema, request));
    return callGrpc({ client: world.grpc, mode, bytes, metadata: headers, deadlineMs });
  }
  const deadline = deadlineMs === undefined ? {} : { "x-request-timeout-ms": String(deadlineMs) };
  return callHttp({
    port: world.gateway.httpPort,
    mode,
    body: http?.body ?? JSON.stringify({ ...toOpenAiJson(request, mode), ...http?.fields }),
    headers: { ...headers, ...deadline, ...http?.headers },
  });
}

async function breakerIs({ world, names }: Run, state: string): Promise<void> {
  const breaker = async (): Promise<string | undefined> =>
    (await world.gateway.readiness()).breakers[`messages/${names.alpha}`];
  await expect.poll(breaker, PATIENCE).toBe(state);
}

/** How many calls each upstream model has had. */
export type Calls = Readonly<Record<ModelName, number>>;

/** The calls up to now. */
export function countCalls({ world, names }: Run): Calls {
  const entries = Object.entries(names).map(([name, upstream]) => [name, world.upstream.calls(upstream).length]);
  return Object.fromEntries(entries) as Calls;
}

function total(calls: Calls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}
