import { describe, expect, it } from "vitest";
import { type CallPlan, goodPlan, tokenText, tokenTexts } from "../../support/faults/call-plan.ts";
import type { JournaledCall } from "../../support/faults/fault-server.ts";
import { plainCaller } from "./caller-plan.ts";
import { judge } from "./judge.ts";
import { auditEntry, type Entry, PRICE } from "./ledger.ts";
import type { Reply } from "./reply.ts";

const SEED = 1;
const ID = { seed: SEED, request: 4, call: 0 };
const CALLER = { ...plainCaller(SEED, ID.request), model: "openai-1", fallbacks: ["openai-2"], streamed: true };

function callOf(plan: Partial<CallPlan> = {}, model = "openai-1"): JournaledCall {
  return { plan: { ...goodPlan(ID), ...plan }, wire: "openai", streamed: true, model, state: "played", tookMs: 1 };
}

const TEXTS = tokenTexts(goodPlan(ID));
const [first = "", second = "", third = ""] = TEXTS;
const GOOD: Reply = { end: "complete", text: TEXTS.join(""), model: "openai-1", breaches: [] };
const cut = callOf({ fault: { kind: "break", how: "close", at: 0.6 } });

const kinds = (reply: Reply, calls: readonly JournaledCall[]): string[] => [
  ...new Set(judge({ plan: CALLER, reply, calls }).map(({ kind }) => kind)),
];

describe("the judge of completions", () => {
  it("accepts a whole answer, and a prefix if the caller cancelled", () => {
    expect(kinds(GOOD, [callOf()])).toEqual([]);
    const leaving = { ...CALLER, leaving: { when: "called" } as const };
    expect(judge({ plan: leaving, reply: { end: "left", text: first, breaches: [] }, calls: [callOf()] })).toEqual([]);
  });

  it.each([
    ["is lost", first + third],
    ["is repeated", first + first + second + third],
    ["is in another order", second + first + third],
    ["is of another call", first + second + tokenText({ ...ID, call: 1 }, 2)],
    ["is of another request", first + second + tokenText({ ...ID, request: 5 }, 2)],
    ["lacks its end", first + second],
    ["is missing", ""],
  ])("sees text that %s", (_, text) => {
    expect(kinds({ ...GOOD, text }, [callOf()])).toEqual(["text"]);
  });

  it("detects an end that the upstream did not send", () => {
    expect(kinds({ ...GOOD, text: first }, [cut])).toEqual(["text", "end"]);
  });

  it("detects text of the first model after a fallback", () => {
    const failure = { type: "server_error", code: "upstream_invalid_response", message: "" };
    const reply: Reply = { end: "failed", text: first, failure, breaches: [] };
    expect(kinds(reply, [cut])).toEqual([]);
    expect(kinds(reply, [cut, callOf({ ...ID, call: 1 }, "openai-2")])).toEqual(["text", "end"]);
  });

  it("detects a lost answer, and a connection that ends without an error", () => {
    const failure = { http: 503, type: "service_unavailable", code: "upstream_unavailable", message: "" };
    expect(kinds({ end: "failed", text: "", failure, breaches: [] }, [callOf()])).toEqual(["end"]);
    expect(kinds({ end: "broken", text: "", breaches: [] }, [cut])).toEqual(["end"]);
  });

  it("detects more calls than planned", () => {
    const refused = callOf({ fault: { kind: "status", status: 500, advice: undefined } });
    expect(kinds(GOOD, [refused, callOf()])).toEqual([]);
    expect(kinds(GOOD, [refused, refused, callOf()])).toEqual(["end"]);
  });
});

describe("the audit of the ledger", () => {
  const { prompt, completion } = goodPlan(ID).usage;
  const ENTRY: Entry = {
    requestId: "faults-4",
    outcome: "served",
    served: "openai-1",
    attempts: [{ model: "openai-1", outcome: "served" }],
    prompt,
    completion,
    costMicroUsd: prompt * PRICE.input + completion * PRICE.output,
    estimated: false,
  };
  const seen = { plan: CALLER, reply: GOOD, calls: [callOf()] };

  it("accepts the entry of an answer", () => {
    expect(auditEntry(seen, [ENTRY])).toEqual([]);
  });

  it.each<[string, readonly Entry[]]>([
    ["is missing", []],
    ["is there twice", [ENTRY, ENTRY]],
    ["has another outcome", [{ ...ENTRY, outcome: "cancelled" }]],
    ["names another model", [{ ...ENTRY, served: "openai-2" }]],
    ["lacks an attempt", [{ ...ENTRY, attempts: [] }]],
    ["has other tokens", [{ ...ENTRY, prompt: prompt + 1, costMicroUsd: ENTRY.costMicroUsd + PRICE.input }]],
    ["costs something else", [{ ...ENTRY, costMicroUsd: ENTRY.costMicroUsd + 1 }]],
    ["costs nothing", [{ ...ENTRY, prompt: 0, completion: 0, costMicroUsd: 0 }]],
  ])("sees an entry that %s", (_, entries) => {
    expect(auditEntry(seen, entries)).not.toEqual([]);
  });
});
