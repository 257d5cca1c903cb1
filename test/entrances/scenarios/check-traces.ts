import { expect } from "vitest";
import type { LogLine } from "../../support/gateway.ts";
import { inShort } from "./reply.ts";
import { activeCalls, type Calls, countCalls, PATIENCE, type Run } from "./run.ts";
import type { Expected, ModelName } from "./scenario.ts";

/** Checks the state after a call: upstream calls, one log line, and no calls in flight. */
export async function checkTraces(run: Run, callsBefore: Calls): Promise<void> {
  const { world, scenario, names } = run;
  const attempts = attemptsOf(scenario.expected);
  await checkRecord(run, attempts);
  await expect.poll(() => activeCalls(run), PATIENCE).toBe(0);
  const calls = countCalls(run);
  for (const name of Object.keys(names) as ModelName[]) {
    // Calls of the unreachable provider cannot be counted.
    const made = name === "gone" ? 0 : attempts.filter((attempt) => isCallOf(name, attempt)).length;
    expect({ [name]: calls[name] - callsBefore[name] }).toEqual({ [name]: made });
    const open = (): number => world.upstream.calls(names[name]).filter(({ state }) => state === "open").length;
    await expect.poll(open, PATIENCE).toBe(0);
  }
}

/** Expects one log line per request: a completion's or a refusal's. */
async function checkRecord({ world, scenario, way, mode, requestId }: Run, attempts: readonly string[]): Promise<void> {
  const { expected, deadlineMs } = scenario;
  const log = (): readonly LogLine[] => [...world.gateway.log, ...world.front.log];
  const lines = (): LogLine[] => log().filter((line) => line["request_id"] === requestId);
  if ("failure" in expected && expected.byLibrary === true) return expect(lines()).toEqual([]);
  await expect.poll(lines, PATIENCE).toHaveLength(1);
  const [line] = lines();
  const outcome = "answer" in expected ? "served" : expected.failure;
  // The core logs completions and has the limits, and is called over gRPC by the front.
  const entrance = way.entrance === "http" && way.through === "front" ? "grpc" : way.entrance;
  if ("failure" in expected && expected.refused === true) {
    const refusedAt = expected.failure === "rate_limited" ? entrance : way.entrance;
    return expect(line).toMatchObject({ msg: "refused", entrance: refusedAt, outcome });
  }
  const noted = (line!["attempts"] as LoggedAttempt[]).map(toShort);
  if (entrance === "grpc" && deadlineMs !== undefined) {
    // The client's own deadline also ends the call, on a slow machine long before the gateway's.
    expect(line).toMatchObject({ msg: "completion", outcome: expect.toBeOneOf([outcome, "cancelled"]) });
    return expect(noted.map((attempt) => attempt.replace("cancelled", outcome))).toEqual(attempts);
  }
  const served = "answer" in expected ? { served_model: expected.answer.model ?? "alpha", prompt_tokens: 7 } : {};
  expect(line).toMatchObject({
    msg: "completion",
    entrance,
    outcome,
    model: scenario.ask?.model ?? "alpha",
    streamed: mode === "stream",
    ...served,
  });
  expect(noted).toEqual(attempts);
}

interface LoggedAttempt {
  readonly model: string;
  readonly outcome: string;
  readonly upstream_status?: number;
}

const toShort = ({ model, outcome, upstream_status: status }: LoggedAttempt): string =>
  inShort({ model, outcome, status });

function attemptsOf(expected: Expected): readonly string[] {
  if (expected.attempts !== undefined) return expected.attempts;
  return "answer" in expected ? [`${expected.answer.model ?? "alpha"} served 200`] : [];
}

const isCallOf = (name: string, attempt: string): boolean =>
  attempt.startsWith(`${name} `) && attempt !== `${name} skipped`;
