import { describe, expect, it } from "vitest";
import { drawCallerPlan } from "./sockets/caller-plan.ts";
import type { Difference } from "./sockets/judge.ts";
import { runSockets } from "./sockets/run.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "../support/scale.ts";

/*
 * The product as a process, with official clients and raw sockets as callers, and providers with every kind of fault.
 * Compares what caller, provider and ledger have for each completion; see `sockets/judge.ts` and `sockets/ledger.ts`.
 */

const AT_ONCE = 48;

/** Completions per part of a long run; each part starts a product. */
const PART = 2_500;

describe("completions on real sockets", () => {
  it(
    "lose, repeat and mix up nothing, end once, and have one ledger entry, under all faults",
    async () => {
      const total = scale(500, 20_000);
      const differences: Difference[] = [];
      const ends: Record<string, number> = {};
      let calls = 0;
      for (let from = 0; from < total; from += PART) {
        const callers = Array.from({ length: Math.min(PART, total - from) }, (_, index) =>
          drawCallerPlan(seed(), from + index),
        );
        const outcome = await runSockets({ seed: seed(), callers, atOnce: AT_ONCE });
        differences.push(...outcome.differences);
        calls += outcome.calls;
        for (const { reply } of outcome.cases) ends[reply.end] = (ends[reply.end] ?? 0) + 1;
        expect(outcome.cases).toHaveLength(callers.length);
      }
      console.log(`${JSON.stringify(ends)}, ${calls} calls of upstreams`);
      for (const { request, kind, what } of differences.slice(0, 20)) {
        console.log(`seed ${seed()}, request ${request}: ${kind}: ${what}`);
        if (request >= 0) console.log(`  ${JSON.stringify(drawCallerPlan(seed(), request))}`);
      }
      const count = (kind: Difference["kind"]): number => differences.filter((each) => each.kind === kind).length;
      figure({ name: "completions on real sockets", value: total, unit: "", atLeast: scale(500, 20_000) });
      figure({ name: "lost, repeated or foreign chunks", value: count("text"), unit: "", atMost: 0 });
      figure({ name: "wrong ends on real sockets", value: count("end"), unit: "", atMost: 0 });
      figure({ name: "ledger differences", value: count("ledger"), unit: "", atMost: 0 });
      // Every kind of end has to occur for the run to be meaningful.
      expect(Object.keys(ends).toSorted()).toEqual(["complete", "failed", "left"]);
    },
    timeLimit(120, 3_600),
  );
});
