import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { threadCpuUsage } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { composeAnswer } from "../../src/simulator/answer.ts";
import { checkRules } from "../../src/simulator/anthropic/rules.ts";
import { toOrder } from "../../src/simulator/embedding.ts";
import { parseFault } from "../../src/simulator/faults.ts";
import { findFaultDirective, type Prompt } from "../../src/simulator/prompt.ts";
import { makeExample, readStatedValues } from "../../src/simulator/schema-example.ts";
import { Sender } from "../../src/simulator/sender.ts";
import { readWrittenCall } from "../../src/simulator/written-call.ts";
import { compareCpuMs, type ComparedMs } from "../support/cpu-time.ts";
import { openSimulator, post } from "./support/simulators.ts";

/** Characters of a prompt. With an expression that backtracks each text takes some seconds at least. */
const LONG = 300_000;
/** Limit of the CPU time of this thread: other work of the machine does not count. */
const MOST_MS = 1_000;

function usedMs(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1000;
}

function ask(text: string, more: Partial<Prompt> = {}): Prompt {
  const toolChoice = { mode: "auto", parallel: true } as const;
  return { model: "m", turns: [{ role: "user", text, images: [] }], tools: [], toolChoice, stop: [], ...more };
}

function directiveOf(text: string): string | undefined {
  return findFaultDirective(ask(text));
}

it.each<readonly [string, () => unknown]>([
  ["beginnings of directives", () => directiveOf("[[fault:".repeat(LONG / 8))],
  ["opening quotation marks", () => readStatedValues("“".repeat(LONG))],
  ["digits before a letter", () => readStatedValues(`${"1".repeat(LONG)}x`)],
])("a long prompt of %s is read at once", (_, read) => {
  const begunMs = usedMs();
  read();
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

function listOf(items: object): object {
  return { type: "array", minItems: 1_000, items };
}

it("an example of nested lists has at most 10,000 values", () => {
  const begunMs = usedMs();
  const example = JSON.stringify(makeExample(listOf(listOf(listOf(listOf({ type: "boolean" }))))));
  expect(example.match(/true/g)!.length).toBeLessThan(10_000);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("a directive is found behind the beginning of another one", () => {
  expect(directiveOf("[[fault: and [[ fault: status=503 ]] hello")).toBe("status=503");
});

const WIDE = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`p${index}`, {}]));
const WIDE_LIST = { anyOf: Array.from({ length: 3_000 }, () => ({ type: "null" })) };

it.each<readonly [string, object]>([
  ["optional properties that it leaves out", { properties: WIDE }],
  ["branches of a union", WIDE_LIST],
  ["references to the same properties", { allOf: Array.from({ length: 3_000 }, () => ({ $ref: "#/$defs/wide" })) }],
  ["steps of a reference", { $ref: `#${"/a".repeat(LONG)}` }],
  ["digits of a limit", { type: "integer", minimum: "9".repeat(LONG) }],
])("an example of a list is made at once from a schema with many %s", (_, items) => {
  const schema = { properties: { list: listOf(listOf(listOf(items))) }, $defs: { wide: { properties: WIDE } } };
  const stated = readStatedValues("-1 ".repeat(1_000));
  const begunMs = usedMs();
  makeExample(schema, stated);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("a written call without its many required properties is completed at once", () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `p${index}`);
  const schema = { properties: Object.fromEntries(names.map((name) => [name, {}])), required: names.toReversed() };
  const begunMs = usedMs();
  readWrittenCall("tool(a=1)", { name: "tool", parameters: schema }, 1);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("tools are looked for in the beginning of a long question only", async () => {
  const tools = Array.from({ length: 500 }, (_, index) => ({ name: `tool_${index}`, parameters: {} }));
  const begunMs = usedMs();
  await composeAnswer(ask(`call tool_7 ${"a".repeat(10 * LONG)}`, { tools }), 0);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("the examples of many calls together are made at once", async () => {
  const wide = { properties: Object.fromEntries(Object.entries(WIDE).slice(0, 800)) };
  const items = { allOf: Array.from({ length: 100 }, () => ({ $ref: "#/$defs/wide" })) };
  const parameters = { properties: { list: listOf(listOf(items)) }, $defs: { wide } };
  const names = Array.from({ length: 80 }, (_, index) => `tool_${index}`);
  const tools = names.map((name) => ({ name, parameters }));
  const begunMs = usedMs();
  const { parts } = await composeAnswer(ask(names.join(" "), { tools }), 0);
  expect(parts.length).toBeGreaterThan(50);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("many tools whose names begin alike are looked for in a shorter beginning of the question", async () => {
  const tools = Array.from({ length: 2_000 }, (_, index) => ({ name: `${"a_".repeat(28)}b${index}`, parameters: {} }));
  const begunMs = usedMs();
  await composeAnswer(ask("a ".repeat(5_000), { tools }), 0);
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("thousands of calls and their results are checked at once", () => {
  const ids = Array.from({ length: 8_000 }, (_, index) => `toolu_${"a".repeat(50)}${index}`);
  const calls = ids.map((id) => ({ type: "tool_use", id, name: "f", input: {} }) as const);
  const results = ids.toReversed().map((id) => ({ type: "tool_result", tool_use_id: id, content: "a" }) as const);
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: calls },
    { role: "user", content: results },
  ] as const;
  const begunMs = usedMs();
  checkRules({ model: "m", max_tokens: 1, messages }, [], { version: "2023-06-01", betas: new Set() });
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
});

it("an answer has no more tokens than its model's largest, so that many long calls are not in memory together", async () => {
  const texts = { type: "array", minItems: 100, items: { type: "string", minLength: 10_000 } };
  const names = Array.from({ length: 50 }, (_, index) => `tool_${index}`);
  const tools = names.map((name) => ({ name, parameters: { properties: { texts } } }));
  const answer = await composeAnswer(ask(names.join(" "), { tools, model: "gpt-5-mini" }), 0);
  expect(answer.end).toEqual({ kind: "length" });
  expect(answer.usage.completionTokens).toBeLessThanOrEqual(128_000);
});

it("answers to one request with together more than 250,000 tokens are refused", async () => {
  const body = { model: "gpt-5-mini", n: 3, messages: [{ role: "user", content: "Write 100000 words" }] };
  const response = await post(await openSimulator(), { dialect: "openai", path: "/v1/chat/completions", body });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("at most 250000 tokens");
});

it("embeddings of many texts leave time for other requests", async () => {
  const texts = Array.from({ length: 50 }, () => "a ".repeat(16_000));
  const order = toOrder({ model: "m", texts, dimensions: 8, encodeStreamError: () => "", write: () => [] });
  const begunMs = usedMs();
  const encoded = order.encodeWhole([]);
  await nextTurn();
  expect(usedMs() - begunMs).toBeLessThan(MOST_MS);
  await encoded;
});

it("a fault of more than 1,000 characters is refused: those that count their requests are kept", () => {
  expect(() => parseFault(`times=1; id=${"a".repeat(1_000)}`)).toThrow("more than 1000 characters");
});

it("an answer that ends after a token costs little, however many words are asked for", () => {
  const compose = (words: number) => (): void => {
    for (let count = 0; count < 20; count++) void composeAnswer(ask(`Write ${words} words`, { maxTokens: 1 }), 0);
  };
  const isWithin = ({ workMs, referenceMs }: ComparedMs): boolean => workMs < 10 * Math.max(referenceMs, 1);
  expect(compareCpuMs(compose(100_000), compose(10), isWithin)).toSatisfy(isWithin);
});

it("long work for several answers is done in turns of the event loop that leave time for others", async () => {
  let turn = 0;
  const count = (): void => {
    turn += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const turns = await Promise.all(
    Array.from({ length: 10 }, async () => {
      await new Sender(new ServerResponse(new IncomingMessage(new Socket())), new AbortController().signal).turn();
      for (const begunMs = usedMs(); usedMs() - begunMs < 6;);
      return turn;
    }),
  );
  clearImmediate(next);
  expect(new Set(turns).size).toBe(10);
});
