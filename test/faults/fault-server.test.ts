import { describe, expect, it, onTestFinished } from "vitest";
import { promiseOf } from "../support/faults/body.ts";
import { type CallPlan, drawCallPlan, goodPlan, tokenText, tokenTexts } from "../support/faults/call-plan.ts";
import { type FaultServer, promptOf, startFaultServer } from "../support/faults/fault-server.ts";
import type { WireName } from "../support/faults/numbered-wire.ts";
import { toScript } from "../support/faults/script.ts";

const ID = { seed: 5, request: 7, call: 0 };
const WIRES: readonly WireName[] = ["anthropic", "gemini", "openai"];
const MANY = Array.from({ length: 1_000 }, (_, request) => drawCallPlan({ ...ID, request }));

async function open(plan: Partial<CallPlan>): Promise<FaultServer> {
  const server = await startFaultServer({ seed: ID.seed, planOf: (id) => ({ ...goodPlan(id), ...plan }) });
  onTestFinished(() => server.close());
  return server;
}

const PATHS = { anthropic: "/v1/messages", gemini: "/v1beta/models/m:generateContent", openai: "/v1/x" } as const;

function ask(server: FaultServer, wire: WireName, streamed: boolean): Promise<Response> {
  const path = wire === "gemini" && streamed ? "/v1beta/models/m:streamGenerateContent?alt=sse" : PATHS[wire];
  const body = { model: "m", stream: streamed, messages: [{ content: promptOf(ID.request) }] };
  return fetch(server.url + path, { method: "POST", body: JSON.stringify(body) });
}

describe("plans", () => {
  it("are equal for the same call and seed, and different otherwise", () => {
    expect(drawCallPlan(ID)).toEqual(drawCallPlan(ID));
    const others = [{ seed: 6 }, { request: 8 }, { call: 1 }].map((other) => drawCallPlan({ ...ID, ...other }));
    for (const other of others)
      expect(toScript(other, { wire: "openai", streamed: true })).not.toEqual(
        toScript(drawCallPlan(ID), { wire: "openai", streamed: true }),
      );
  });

  it("contain every kind of fault among a thousand calls, and no fault in about half of them", () => {
    const kinds = new Set(MANY.map(({ fault }) => (fault.kind === "break" ? fault.how : fault.kind)));
    const all = "close empty end error garbage gzip hang html none overrun reset stall status underrun unfinished";
    expect([...kinds].toSorted().join(" ")).toBe(all);
    const good = MANY.filter(({ fault }) => fault.kind === "none").length;
    expect(good).toBeGreaterThan(400);
    expect(good).toBeLessThan(600);
  });

  it("expect each outcome at least once", () => {
    const promises = MANY.flatMap((plan) => WIRES.map((wire) => promiseOf(plan, { wire, streamed: true }).complete));
    expect(new Set(promises)).toEqual(new Set(["yes", "no", "either"]));
  });
});

describe("tokens", () => {
  it("are all different, and identify their call", () => {
    const texts = MANY.flatMap(tokenTexts);
    expect(new Set(texts).size).toBe(texts.length);
    expect(tokenText(ID, 3)).toContain("7.0.3 ");
    expect(tokenText({ ...ID, seed: 6 }, 3)).not.toBe(tokenText(ID, 3));
  });
});

describe.each(WIRES)("the fault server in the %s dialect", (wire) => {
  it.each([true, false])("sends all tokens of a complete answer (streamed: %s)", async (streamed) => {
    const server = await open({ tokens: 30, writes: { kind: "in-characters" } });
    const text = await (await ask(server, wire, streamed)).text();
    for (const token of tokenTexts({ ...goodPlan(ID), tokens: 30 }))
      expect(text).toContain(JSON.stringify(token).slice(1, -1));
    await expect.poll(() => server.calls(ID.request)).toMatchObject([{ state: "played", wire, streamed }]);
  });

  it("refuses with a status and its retry-after", async () => {
    const server = await open({ fault: { kind: "status", status: 529, advice: ["retry-after", "0"] } });
    const response = await ask(server, wire, true);
    expect(response.status).toBe(529);
    expect(response.headers.get("retry-after")).toBe("0");
    expect(await response.json()).toHaveProperty("error");
  });

  it.each(["close", "reset", "underrun"] as const)("interrupts a response (%s)", async (how) => {
    const server = await open({ fault: { kind: "break", how, at: 0.5 } });
    await expect(ask(server, wire, false).then((response) => response.text())).rejects.toThrow(
      /terminated|fetch failed/,
    );
  });
});
