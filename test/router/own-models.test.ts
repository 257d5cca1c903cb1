import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import type { AccountRouting } from "../../src/core/principal.ts";
import { createRoute, type Route } from "../../src/core/route.ts";
import { OwnModels } from "../../src/router/own-models.ts";
import { createRouter } from "../../src/router/router.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, type Script, ScriptedProvider } from "../support/scripted-provider.ts";
import { collect, newCall, NO_RULES, outcomes, serves } from "./routed.ts";

const REFUSED: Script = {
  ending: new Failure("upstream_refused_us", "refused", { upstreamStatus: 401, refused: true }),
};

/** Two models at providers of their own, with providers of accounts by the IDs of credentials, and a name for both. */
function createWorld(own: Readonly<Record<string, Script>>) {
  const clock = new FakeClock();
  const made: string[] = [];
  const shared = new ScriptedProvider(clock, { "a-upstream": [serves("operator")], "b-upstream": [serves("b")] });
  const a = modelOf("a", shared, {
    providerName: "released",
    providerOf(accountId, { id }) {
      made.push(`${accountId} ${id}`);
      return new ScriptedProvider(clock, { "a-upstream": [own[id]!] });
    },
  });
  const b = modelOf("b", shared, { providerName: "other" });
  const targets = [a, b].map((model) => ({ model, weight: 1, when: undefined }));
  const facts = { description: "", created: 0, affinity: false } as const;
  const both = createRoute({ ...facts, id: "both", policy: "ordered", targets });
  const alone = createRoute({ ...facts, id: "alone", policy: "ordered", targets: targets.slice(1) });
  const options = { clock, random: () => 0.5, backoff: { baseMs: 100, capMs: 2_000 } };
  const breaker = { failures: 1, openMs: 10_000, maxOpenMs: 60_000 };
  const router = createRouter({ models: [a, b], routes: [both, alone], aliases: [["x*", "b"]], ...options, breaker });
  const callerOf = (accountId: string, id: string | undefined, aliases: AccountRouting["aliases"] = []) => ({
    accountId,
    keyFamilyId: `key of ${accountId}`,
    routing: { credentials: new Map(id === undefined ? [] : [["released", { id, sealed: "" }]]), aliases },
  });
  const ask = async (name: string, caller: ReturnType<typeof callerOf>) => {
    const candidate = router.find(name, caller)!;
    const plan = router.plan(create(CompletionRequestSchema), [candidate], { mode: "stream", rules: NO_RULES, caller });
    const call = { ...newCall(), accountId: caller.accountId };
    await clock.drive(collect((emit) => plan.stream(call, emit)));
    return { outcomes: outcomes(call.attempts), own: call.attempts.map(({ ownCredential }) => ownCredential === true) };
  };
  return { a, b, both, alone, router, made, callerOf, ask };
}

describe("a model with an account's own credential", () => {
  it("is the same one each time, until the credential is another one", () => {
    const { a, b, router, made, callerOf } = createWorld({ one: serves("1"), two: serves("2") });
    const bob = callerOf("bob", "one");
    const found = router.find("a", bob) as Model;
    expect(found).not.toBe(a);
    expect(found).toMatchObject({ id: "a", ownCredential: "one" });
    expect(router.find("a", callerOf("bob", "one"))).toBe(found);
    expect(router.find("a", callerOf("bob", "two"))).not.toBe(found);
    expect(made).toEqual(["bob one", "bob two"]);
    expect(router.find("b", bob)).toBe(b);
    expect(router.find("a")).toBe(a);
    expect(router.find("a", callerOf("ada", undefined))).toBe(a);
  });

  it("is a target of names, which stay themselves without it", () => {
    const { alone, both, router, callerOf } = createWorld({ one: serves("1") });
    const bob = callerOf("bob", "one");
    const route = router.find("both", bob) as Route;
    expect(route.targets.map(({ model }) => [model.id, model.ownCredential])).toEqual([
      ["a", "one"],
      ["b", undefined],
    ]);
    expect(router.find("both", callerOf("bob", "one"))).toBe(route);
    expect(router.find("alone", bob)).toBe(alone);
    expect(router.find("both", callerOf("ada", undefined))).toBe(both);
  });

  it("has health of its own: what it fails in closes nothing for others, and shows in no list", async () => {
    const { router, callerOf, ask } = createWorld({ wrong: REFUSED, right: serves("hi"), ofAnother: serves("hi") });
    const bob = callerOf("bob", "wrong");
    expect(await ask("a", bob)).toEqual({ outcomes: ["a:upstream_refused_us"], own: [true] });
    expect((await ask("a", bob)).outcomes).toEqual(["a:skipped"]);
    // Of a name the other target comes first while the own one is down.
    expect(await ask("both", bob)).toEqual({ outcomes: ["b:served"], own: [false] });
    expect(await ask("a", callerOf("ada", undefined))).toEqual({ outcomes: ["a:served"], own: [false] });
    expect((await ask("a", callerOf("eve", "ofAnother"))).outcomes).toEqual(["a:served"]);
    expect(await ask("both", callerOf("ada", undefined))).toEqual({ outcomes: ["a:served"], own: [false] });
    expect(Object.fromEntries(router.health())).toEqual({
      "other/b-upstream": "closed",
      "released/a-upstream": "closed",
    });
    expect(router.healthNote()?.down).toEqual([]);
    expect((await ask("a", callerOf("bob", "right"))).outcomes).toEqual(["a:served"]);
  });

  it("is forgotten beyond a number of accounts, which get another one", () => {
    const { a } = createWorld({});
    const own = new OwnModels();
    const model = { ...a, providerOf: () => a.provider };
    const of = (index: number) => {
      const credentials = new Map([["released", { id: `${index}`, sealed: "" }]]);
      return own.of(model, { accountId: `account ${index}`, credentials });
    };
    const first = of(0);
    expect(of(0)).toBe(first);
    for (let index = 1; index <= 1_000; index++) of(index);
    expect(of(1_000)).toBe(of(1_000));
    expect(of(0)).not.toBe(first);
  });
});

describe("an account's aliases", () => {
  it("come after models and before those of the configuration", () => {
    const { a, b, router, callerOf } = createWorld({});
    const bob = callerOf("bob", undefined, [
      ["a", "b"],
      ["x1", "a"],
      ["gone", "none"],
      ["y*", "both"],
    ]);
    expect(["a", "x1", "x2", "gone", "y"].map((name) => router.find(name, bob)?.id)).toEqual([
      a.id,
      a.id,
      b.id,
      undefined,
      "both",
    ]);
    expect(router.find("x1", callerOf("ada", undefined))).toBe(b);
    expect(router.find("y", callerOf("ada", undefined))).toBeUndefined();
  });
});
