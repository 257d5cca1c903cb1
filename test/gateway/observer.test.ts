import { expect, it } from "vitest";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import { createObserver } from "../../src/gateway/observer.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import type { Metrics } from "../../src/telemetry/metrics.ts";
import { FakeClock } from "../support/fake-clock.ts";

it("refusals without a key take at most 100 lines of the log in a second, and the next second has the count", () => {
  const clock = new FakeClock();
  const lines: object[] = [];
  const add = (fields: object, msg: string): void => void lines.push({ ...fields, msg });
  const log = { line: (_: string, fields: object, msg: string) => add(fields, msg), info: add } as unknown as Logger;
  const metrics = { refusal: () => undefined } as unknown as Metrics;
  const observer = createObserver({ log, metrics, clock, find: () => undefined });
  const refuse = (code: FailureCode): void =>
    observer.refused({ entrance: "http", requestId: "req_1", target: "/x", failure: new Failure(code, "No.") });
  for (let count = 0; count < 150; count++) refuse(count % 2 === 0 ? "unauthenticated" : "not_found");
  expect(lines).toHaveLength(100);
  refuse("rate_limited");
  expect(lines.at(-1)).toMatchObject({ outcome: "rate_limited" });
  clock.advance(1000);
  refuse("unauthenticated");
  expect(lines.slice(101)).toMatchObject([
    { lines: 50, msg: "refusals without a key were not logged" },
    { outcome: "unauthenticated" },
  ]);
});
