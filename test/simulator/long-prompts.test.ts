import { expect, it } from "vitest";
import { findFaultDirective, type Prompt } from "../../src/simulator/prompt.ts";
import { makeExample, readStatedValues } from "../../src/simulator/schema-example.ts";

/** Characters of a prompt. With an expression that backtracks each text takes some seconds at least. */
const LONG = 300_000;
const MOST_MS = 500;

function directiveOf(text: string): string | undefined {
  const prompt: Prompt = {
    model: "m",
    turns: [{ role: "user", text, images: [] }],
    tools: [],
    toolChoice: { mode: "none", parallel: false },
    stop: [],
  };
  return findFaultDirective(prompt);
}

it.each<readonly [string, () => unknown]>([
  ["beginnings of directives", () => directiveOf("[[fault:".repeat(LONG / 8))],
  ["opening quotation marks", () => readStatedValues("“".repeat(LONG))],
  ["digits before a letter", () => readStatedValues(`${"1".repeat(LONG)}x`)],
])("a long prompt of %s is read at once", (_, read) => {
  const begunMs = performance.now();
  read();
  expect(performance.now() - begunMs).toBeLessThan(MOST_MS);
});

it("an example of nested lists has at most 10,000 values", () => {
  const listOf = (items: object): object => ({ type: "array", minItems: 1_000, items });
  const begunMs = performance.now();
  const example = JSON.stringify(makeExample(listOf(listOf(listOf(listOf({ type: "boolean" }))))));
  expect(example.match(/true/g)!.length).toBeLessThan(10_000);
  expect(performance.now() - begunMs).toBeLessThan(MOST_MS);
});

it("a directive is found behind the beginning of another one", () => {
  expect(directiveOf("[[fault: and [[ fault: status=503 ]] hello")).toBe("status=503");
});
