import { toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingRequestSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { expect } from "vitest";
import { toEmbedding, toRequest } from "./ask.ts";
import { checkReply } from "./check-reply.ts";
import { checkTraces } from "./check-traces.ts";
import { callGrpc } from "./grpc-client.ts";
import { callHttp } from "./http-client.ts";
import type { RunningCall } from "./reply.ts";
import type { Scenario } from "./scenario.ts";
import { activeCalls, type Calls, countCalls, PATIENCE, type Run, type Way } from "./run.ts";

type HttpWay = Extract<Way, { entrance: "http" }>;
type GrpcWay = Extract<Way, { entrance: "grpc" }>;

/** Runs a scenario and checks the reply, the upstream calls and the state afterwards. */
export async function playScenario(base: Omit<Run, "names">): Promise<void> {
  const { world, scenario } = base;
  const run: Run = { ...base, names: await world.prepare(scenario) };
  for (let past = 0; past < (scenario.before?.times ?? 0); past += 1) {
    const call = send(run, `${run.requestId}-before-${past}`);
    await call.reply;
    call.leave();
  }
  if (scenario.before?.breaker !== undefined) await breakerIs(run, scenario.before.breaker);
  const callsBefore = countCalls(run);

  const call = send(run, run.requestId);
  let isClosing = false;
  try {
    if (scenario.leaves !== undefined && scenario.leaves !== "after the end") await leave(run, call, callsBefore);
    else {
      if (scenario.stops !== undefined) await stop(run, call, callsBefore);
      checkReply(run, await call.reply);
    }
    isClosing = scenario.expected.closesConnection === true && run.way.entrance === "http";
    if (isClosing) world.closing.push({ requestId: run.requestId, call });
  } finally {
    if (!isClosing) call.leave();
  }
  if (scenario.expected.breaker !== undefined) await breakerIs(run, scenario.expected.breaker);
  await checkTraces(run, callsBefore);
}

async function leave(run: Run, call: RunningCall, callsBefore: Calls): Promise<void> {
  await reached(run, call, { moment: run.scenario.leaves!, callsBefore });
  call.reply.catch(() => {});
  call.leave();
}

async function stop(run: Run, call: RunningCall, callsBefore: Calls): Promise<void> {
  await reached(run, call, { moment: run.scenario.stops!, callsBefore });
  run.world.gateway.abort();
}

async function reached(
  run: Run,
  call: RunningCall,
  { moment, callsBefore }: { moment: NonNullable<Scenario["leaves"]>; callsBefore: Calls },
): Promise<void> {
  const arrived = (): number => total(countCalls(run)) - total(callsBefore);
  switch (moment) {
    case "while sending":
      await expect.poll(() => activeCalls(run), PATIENCE).toBe(1);
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
}

function send(run: Run, requestId: string): RunningCall {
  const { world, scenario, way } = run;
  const authorization = world.authorization[scenario.key ?? "any"];
  const headers = { "x-request-id": requestId, ...(authorization !== undefined && { authorization }) };
  return way.entrance === "grpc" ? sendGrpc(run, way, headers) : sendHttp(run, way, headers);
}

type Headers = Readonly<Record<string, string>>;

function sendGrpc({ world, scenario, mode }: Run, { service }: GrpcWay, metadata: Headers): RunningCall {
  const { ask, embed, grpcBytes, deadlineMs, isUnknownPath } = scenario;
  const message =
    service === "embeddings"
      ? toBinary(EmbeddingRequestSchema, toEmbedding(ask, embed))
      : toBinary(CompletionRequestSchema, toRequest(ask));
  const path = isUnknownPath === true ? UNKNOWN_METHOD : undefined;
  const bytes = grpcBytes ?? Buffer.from(message);
  return callGrpc({ client: world.grpc, path, service, mode, bytes, metadata, deadlineMs });
}

const UNKNOWN_METHOD = "/parley.v1.CompletionService/Complete";

function sendHttp({ world, scenario, mode }: Run, { caller, through }: HttpWay, headers: Headers): RunningCall {
  const { ask, embed, http, fields, deadlineMs, isUnknownPath } = scenario;
  const request = toRequest(ask);
  const written = caller.service === "embeddings" ? caller.write(toEmbedding(ask, embed)) : caller.write(request, mode);
  const deadline = deadlineMs === undefined ? {} : { "x-request-timeout-ms": String(deadlineMs) };
  return callHttp({
    port: through === "front" ? world.front.httpPort : world.gateway.httpPort,
    caller,
    path: isUnknownPath === true ? caller.unknownPath : caller.path(request.model, mode),
    mode,
    body: http?.body ?? JSON.stringify({ ...written, ...fields }),
    headers: { ...headers, ...deadline, ...http?.headers },
  });
}

async function breakerIs({ world, names }: Run, state: string): Promise<void> {
  const breaker = async (): Promise<string | undefined> => {
    const { breakers } = await world.gateway.readiness();
    return Object.entries(breakers).find(([target]) => target.endsWith(`/${names.alpha}`))?.[1];
  };
  await expect.poll(breaker, PATIENCE).toBe(state);
}

function total(calls: Calls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0);
}
