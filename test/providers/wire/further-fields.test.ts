import { describe, expect, it } from "vitest";
import { PartBudget } from "../../../src/core/part-budget.ts";
import { FurtherFields } from "../../../src/providers/wire/further-fields.ts";
import { keepAll, redactionOf } from "../../../src/providers/wire/redaction.ts";
import { compareCpuMs, type ComparedMs } from "../../support/cpu-time.ts";

const fields = (budget = new PartBudget()): FurtherFields => new FurtherFields("d.", new Set(["known"]), budget);

describe("further fields of an answer", () => {
  it("are those that are not known, the last value of each, and not what is the gateway's own", () => {
    const of = fields();
    of.add({ known: 1, a: 1, b: null, id: "up", model: "m", usage: {}, organization: "o", parley: {} });
    of.add({ a: [2], b: undefined, c: "é", "not a name": 1, ["__proto__"]: 1 });
    expect(of.read(keepAll)).toEqual({ "d.a": "[2]", "d.c": '"é"' });
  });

  it("have no state and nothing of the gateway's account at any depth", () => {
    const of = fields();
    const account = { organization: "o", projectId: "p", account_id: "a", cost: 1, billing: {} };
    of.add({ a: [{ encrypted_content: "x", signature: "y", ...account, id: 1, model: "m" }], cost_details: {} });
    expect(of.read(keepAll)).toEqual({ "d.a": '[{"id":1,"model":"m"}]' });
  });

  it("are joined where they come in pieces, as official clients join them", () => {
    const of = fields();
    for (const piece of [
      { text: "a", list: [1], flag: true },
      { text: "b", list: [2, 3], flag: false },
      { text: null },
    ])
      of.addPiece(piece);
    expect(of.read(keepAll)).toEqual({ "d.text": '"ab"', "d.list": "[1,2,3]", "d.flag": "false" });
  });

  it("have no credential of the gateway", () => {
    const of = fields();
    of.add({ a: { said: "by 1234567890123456 to you" }, b: 1234567890123456 });
    expect(of.read(redactionOf(["1234567890123456"]))).toEqual({ "d.a": '{"said":"by [key] to you"}' });
  });

  it("are at most 32, and at most 256 KiB", () => {
    const of = fields();
    of.add(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, "x".repeat(10_000)])));
    expect(Object.keys(of.read(keepAll))).toHaveLength(26);
    const many = fields();
    many.add(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f${at}`, 1])));
    expect(Object.keys(many.read(keepAll))).toHaveLength(32);
    const long = fields();
    for (let at = 0; at < 100; at++) long.addPiece({ text: "x".repeat(10_000), list: ["x".repeat(10_000)] });
    const { "d.text": text = "", "d.list": list = "" } = long.read(keepAll);
    expect(text.length + list.length).toBeLessThanOrEqual(300_000);
  });

  it("are at most 1 MiB in all objects of an answer, with eight characters for each value, and replaced ones count no more", () => {
    const budget = new PartBudget();
    const replaced = fields(budget);
    for (let at = 0; at < 100; at++) replaced.add({ a: "x".repeat(100_000) });
    const objects = Array.from({ length: 200 }, () => fields(budget));
    for (const of of objects) of.addPiece({ list: Array.from({ length: 1_000 }, () => []), text: "x" });
    const kept = objects.filter((of) => "d.list" in of.read(keepAll));
    expect(kept.length).toBeGreaterThan(100);
    expect(kept.length).toBeLessThan(130);
    expect(Object.keys(replaced.read(keepAll))).toEqual(["d.a"]);
  });

  it("take time in proportion to their pieces", () => {
    const join = (pieces: number): void => {
      const of = fields();
      for (let at = 0; at < pieces; at++) of.addPiece({ text: "x", list: [1] });
      of.read(keepAll);
    };
    const isWithin = ({ workMs, referenceMs }: ComparedMs): boolean => workMs < 40 * Math.max(referenceMs, 0.5);
    const minima = compareCpuMs(
      () => join(20_000),
      () => join(2_000),
      isWithin,
    );
    expect(minima).toSatisfy(isWithin);
  });
});
