import { describe, expect, it } from "vitest";
import { type Act, refuses, type ScriptedCall, staysSilent } from "../support/scripted-upstream.ts";
import { toRequest } from "./scenarios/ask.ts";
import { CHAT } from "./scenarios/callers/chat.ts";
import { callHttp } from "./scenarios/http-client.ts";
import type { Reply } from "./scenarios/reply.ts";
import { PATIENCE } from "./scenarios/run.ts";
import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", caller: CHAT }, (world) => {
  describe("concurrent callers", () => {
    it("share three retries while a provider fails all of them", async () => {
      const held: ScriptedCall[] = [];
      const refusesTogether: Act = (call) => {
        held.push(call);
        if (held.length === 6) for (const each of held) refuses(429)(each);
      };
      const upstream = { alpha: [...Array.from({ length: 6 }, () => refusesTogether), staysSilent] };
      const names = await world().prepare({ name: "six callers", upstream, expected: { answer: {} } });
      const replies: Reply[] = [];
      const calls = Array.from({ length: 6 }, () => {
        const call = callHttp({
          port: world().gateway.httpPort,
          caller: CHAT,
          path: CHAT.path("alpha", "whole"),
          mode: "whole",
          body: JSON.stringify(CHAT.write(toRequest(), "whole")),
          headers: { authorization: world().authorization.any! },
        });
        call.reply.then(
          (reply) => replies.push(reply),
          () => {},
        );
        return call;
      });
      await expect.poll(() => replies.length, PATIENCE).toBe(3);
      await expect.poll(() => world().upstream.calls(names.alpha).length, PATIENCE).toBe(9);
      for (const { failure } of replies) expect(failure?.attempts).toEqual(["alpha upstream_rate_limited 429"]);
      for (const call of calls) call.leave();
      await expect.poll(async () => (await world().gateway.readiness()).active_calls, PATIENCE).toBe(0);
    });
  });
});
