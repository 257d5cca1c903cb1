import type { FailureCode } from "../../../src/core/failure.ts";
import { begins, type Breakage } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const DIALECTS = ["alpha", "beta", "local"] as const;

/** What each way of breaking off is called. */
const BREAKAGES: readonly (readonly [what: string, breakage: Breakage, failure: FailureCode])[] = [
  ["closes the connection", "close", "upstream_protocol"],
  ["resets the connection", "reset", "upstream_unavailable"],
  ["ends without a reason", "end", "upstream_protocol"],
  ["sends an error", "error", "upstream_unavailable"],
  ["sends garbage", "garbage", "upstream_protocol"],
];

/** Streams that break after their first content: the caller keeps what it has, and is told that it is not all. */
export const BREAKING: readonly Scenario[] = [
  ...BREAKAGES.flatMap(([what, breakage, failure]) =>
    DIALECTS.map((model): Scenario => ({
      name: `ends a stream with a failure when ${model} ${what} in the middle, and asks no other model`,
      mode: "stream",
      ask: { model, fallbackModels: ["alpha", "beta", "local"] },
      upstream: { [model]: [begins("Hel", breakage)] },
      expected: {
        failure,
        after: "Hel",
        attempts: [`${model} ${failure} 200`],
        closesConnection: true,
        ...(breakage === "error" && { detail: "upstream_overloaded" }),
      },
    })),
  ),
  {
    name: "ends a stream with a failure when alpha goes silent in the middle, and asks no other model",
    mode: "stream",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [begins("Hel", "silence")] },
    models: { alpha: { timeouts: { idle_ms: 60 } } },
    expected: {
      failure: "upstream_timeout",
      after: "Hel",
      attempts: ["alpha upstream_timeout 200"],
      closesConnection: true,
    },
  },
];
