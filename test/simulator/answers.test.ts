import { describe, expect, it } from "vitest";
import { composeAnswer, type Part } from "../../src/simulator/answer.ts";
import type { Prompt } from "../../src/simulator/prompt.ts";
import { splitTokens } from "../../src/simulator/text.ts";
import { openSimulator, post, REQUESTS, toStreamed, type DialectName } from "./support/simulators.ts";

const DIALECTS: readonly DialectName[] = ["anthropic", "gemini", "openai"];

function ask(text: string, more: Partial<Prompt> = {}): Prompt {
  const toolChoice = { mode: "auto", parallel: true } as const;
  return { model: "m", turns: [{ role: "user", text, images: [] }], tools: [], toolChoice, stop: [], ...more };
}

function joinText(parts: readonly Part[]): string {
  return parts.map((part) => (part.kind === "text" ? part.tokens.join("") : "")).join("");
}

async function textOf(prompt: Prompt): Promise<string> {
  return joinText((await composeAnswer(prompt, 0)).parts);
}

describe("an answer", () => {
  it.each(DIALECTS)(
    "is identical for the same request in the %s dialect, except for the timestamp",
    async (dialect) => {
      const simulator = await openSimulator();
      const read = async (request: { path: string; body: unknown }): Promise<string> =>
        (await (await post(simulator, { dialect, ...request })).text()).replaceAll(/"created":\d+/gu, "");
      expect(await read(REQUESTS[dialect])).toBe(await read(REQUESTS[dialect]));
      expect(await read(toStreamed(dialect))).toBe(await read(toStreamed(dialect)));
    },
  );

  it("is identical from another simulator", async () => {
    const texts: string[] = [];
    for (const simulator of [await openSimulator(), await openSimulator()]) {
      texts.push(await (await post(simulator, { dialect: "gemini" })).text());
    }
    expect(texts[0]).toBe(texts[1]);
  });

  it.each([1, 12, 13, 100, 2500])("has exactly the %i requested words", async (count) => {
    const text = await textOf(ask(`Please write ${count} words about the sea`));
    expect(text.split(/\s+/u)).toHaveLength(count);
    expect(text).toMatch(/\.$/u);
  });

  it("is truncated, but not otherwise changed, by a token limit", async () => {
    const whole = await textOf(ask("Write 50 words"));
    const cut = await composeAnswer(ask("Write 50 words", { maxTokens: 10 }), 0);
    expect(cut).toMatchObject({ end: { kind: "length" }, usage: { completionTokens: 10 } });
    expect(whole.startsWith(joinText(cut.parts))).toBe(true);
  });

  it("ends before the earliest of several stop sequences", async () => {
    const answer = await composeAnswer(ask("alpha beta gamma", { stop: ["gamma", "beta"] }), 0);
    expect(answer.end).toEqual({ kind: "stop", sequence: "beta" });
    expect(joinText(answer.parts)).toMatch(/alpha $/u);
  });

  it("counts its tokens exactly, including non-ASCII text", async () => {
    const answer = await composeAnswer(ask("Grüße aus Köln 👩‍🚀 世界"), 0);
    expect(answer.usage.completionTokens).toBe(splitTokens(joinText(answer.parts)).length);
    expect(joinText(answer.parts)).toContain("Grüße aus Köln 👩‍🚀 世界");
  });

  it("counts more prompt tokens for a longer request", async () => {
    const short = await composeAnswer(ask("Hi"), 0);
    const long = await composeAnswer(ask("Hi ".repeat(400)), 0);
    expect(short.usage.promptTokens).toBe(4);
    expect(long.usage.promptTokens).toBe(303);
  });

  it("truncates the quote of a long message", async () => {
    const text = await textOf(ask("tide ".repeat(1000)));
    expect(text.length).toBeLessThan(600);
    expect(text).toContain("tide…");
  });

  it("calls every tool that the message names, or only one without parallel calls", async () => {
    const tools = ["get_weather", "get_time", "ping"].map((name) => ({ name, parameters: undefined }));
    const named = async (parallel: boolean): Promise<unknown[]> => {
      const prompt = ask("get the weather with get-weather and Get Time", {
        tools,
        toolChoice: { mode: "auto", parallel },
      });
      return (await composeAnswer(prompt, 0)).parts.map((part) => (part.kind === "call" ? part.name : part.kind));
    };
    expect(await named(true)).toEqual(["get_weather", "get_time"]);
    expect(await named(false)).toEqual(["get_weather"]);
  });

  it.each([
    ["What is the weather in Oslo?", ["get_weather"]],
    ["Is it fine in Oslo?", []],
    ["The weathercock is broken", []],
    ["Please ping", ["ping"]],
    ["What is gettable?", []],
  ])("matches a tool by its name without the verb: %s", async (question, called) => {
    const tools = ["get_weather", "ping", "get"].map((name) => ({ name, parameters: undefined }));
    const { parts } = await composeAnswer(ask(question, { tools }), 0);
    expect(parts.flatMap((part) => (part.kind === "call" ? [part.name] : []))).toEqual(called);
  });

  it("calls a tool with the numbers and quoted words of the message", async () => {
    const properties = { name: { type: "string" }, age: { type: "integer", maximum: 99 }, note: { type: "string" } };
    const tools = [{ name: "add_person", parameters: { type: "object", properties } }];
    const { parts } = await composeAnswer(ask("Use add_person for 'Åse', who was 42 in 2026", { tools }), 0);
    expect(parts).toMatchObject([{ kind: "call", input: { name: "Åse", age: 42, note: "example note" } }]);
  });

  it.each<[string, object]>([
    ["add_person(name='Åse B.', age=42)", { name: "Åse B.", age: 42 }],
    ['add_person(name = "it\'s", old=true), then say "done" to greet', { name: "it's", old: true }],
    ["add_person(age=7)", { name: "example name", age: 7 }],
  ])("calls only the tool of a call written in the message, with its arguments: %s", async (written, input) => {
    const properties = { name: { type: "string" }, age: { type: "integer" }, note: { type: "string" } };
    const parameters = { type: "object", properties, required: ["name"] };
    const tools = [
      { name: "greet", parameters },
      { name: "add_person", parameters },
    ];
    const { parts } = await composeAnswer(ask(`Do not greet, call ${written}`, { tools }), 0);
    expect(parts.map((part) => part.kind === "call" && [part.name, part.input])).toEqual([["add_person", input]]);
  });

  it("is JSON if only the system message demands it, with the properties quoted in the message", async () => {
    const instructed = ask("A joke with 'setup' and 'punchline'");
    const turns = [{ role: "system", text: "Answer with exactly one JSON object.", images: [] } as const];
    const text = await textOf({ ...instructed, turns: [...turns, ...instructed.turns] });
    expect(Object.keys(JSON.parse(text))).toEqual(["setup", "punchline"]);
    expect(JSON.parse(await textOf(ask("Anything", { json: {} })))).toEqual({ simulated: true });
  });

  it("omits a call that exceeds the token limit", async () => {
    const tools = [
      { name: "f", parameters: { type: "object", properties: { text: { type: "string", minLength: 300 } } } },
    ];
    const toolChoice = { mode: "required", parallel: true } as const;
    expect(await composeAnswer(ask("Hi", { tools, toolChoice, maxTokens: 5 }), 0)).toMatchObject({
      parts: [],
      end: { kind: "length" },
      usage: { completionTokens: 0 },
    });
  });
});
