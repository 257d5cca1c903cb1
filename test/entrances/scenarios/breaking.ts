import type { FailureCode } from "../../../src/core/failure.ts";
import { begins, type Breakage } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const DIALECTS = ["alpha", "beta", "local"] as const;

/** Titles of the kinds of interruption. */
const BREAKAGES: readonly (readonly [what: string, breakage: Breakage, failure: FailureCode])[] = [
  ["closes the connection", "close", "upstream_protocol"],
  ["resets the connection", "reset", "upstream_unavailable"],
  ["ends without a reason", "end", "upstream_protocol"],
  ["sends an error", "error", "upstream_unavailable"],
  ["sends garbage", "garbage", "upstream_protocol"],
];

/** Streams that are interrupted after their first content: the caller gets the partial answer and an error. */
export const BREAKING: readonly Scenario[] = [
  ...BREAKAGES.flatMap(([what, breakage, failure]) =>
    DIALECTS.map((model): Scenario => ({
      name: `ends a stream with a failure when ${model} ${what} in the middle, without calling another model`,
      isRepeat: model !== "alpha",
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
    name: "ends a stream with a failure when alpha sends nothing more in the middle, without calling another model",
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
