import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { RoutePlanSchema } from "../../gen/parley/v1/route_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { compareWorlds } from "./explained-agreement.ts";
import { Dice, ExplainedWorld } from "./explained-world.ts";

describe("an explanation", () => {
  it("agrees with what then happens, in 1,500 random requests", async () => {
    const { wrong, planned, refused, fellBack } = await compareWorlds(Array.from({ length: 15 }, (_, index) => index));
    expect(wrong).toEqual([]);
    expect(Math.min(planned, refused, fellBack)).toBeGreaterThan(100);
  });

  it("changes nothing: requests go where they would have gone without it", async () => {
    const [plain, explained] = [new ExplainedWorld(7), new ExplainedWorld(7)];
    const dice = [new Dice(8), new Dice(8)] as const;
    for (let index = 0; index < 200; index++) {
      const asked = explained.draw(dice[0]);
      const plans = [await explained.explain(asked), await explained.explain(asked), await explained.explain(asked)];
      const shown = plans.map((plan) => (plan instanceof Failure ? plan.message : toJson(RoutePlanSchema, plan)));
      expect(shown[1]).toEqual(shown[0]);
      expect(shown[2]).toEqual(shown[0]);
      const records = [await explained.run(asked), await plain.run(plain.draw(dice[1]))];
      expect(records[0]!.attempts).toEqual(records[1]!.attempts);
    }
  });
});
