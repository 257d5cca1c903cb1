import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import type { SimulatorOptions } from "../../src/simulator/server.ts";
import { PIXEL } from "./support/png-reader.ts";
import { openSimulator } from "./support/simulators.ts";

const MODEL = "claude-sonnet-4-5-20250929";

async function openClient(options: SimulatorOptions = {}): Promise<Anthropic> {
  const { url } = await openSimulator(options);
  return new Anthropic({ apiKey: "any", authToken: null, baseURL: url, maxRetries: 0 });
}

function ask(content: Anthropic.MessageParam["content"]): Anthropic.MessageCreateParamsNonStreaming {
  return { model: MODEL, max_tokens: 1000, messages: [{ role: "user", content }] };
}

function readText(message: Anthropic.Message): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

describe("the official Anthropic client", () => {
  it("gets a message that quotes the question and identifies itself as simulated", async () => {
    const client = await openClient();
    const message = await client.messages.create({ ...ask("What is a tide?"), system: "You are terse." });
    expect(message).toMatchObject({ role: "assistant", model: MODEL, stop_reason: "end_turn" });
    expect(readText(message)).toContain("What is a tide?");
    expect(readText(message)).toContain("You are terse.");
    expect(readText(message)).toMatch(/simulat/u);
    expect(message.usage.output_tokens).toBeGreaterThan(0);
    expect(message._request_id).toMatch(/^req_/u);
  });

  it("assembles a stream into the same message as the whole response", async () => {
    const client = await openClient();
    const whole = await client.messages.create(ask("Tell me a story in 60 words"));
    const streamed = await client.messages.stream(ask("Tell me a story in 60 words")).finalMessage();
    expect(streamed).toMatchObject({ id: whole.id, stop_reason: whole.stop_reason, usage: whole.usage });
    expect(readText(streamed)).toBe(readText(whole));
    expect(readText(whole).split(/\s+/u)).toHaveLength(60);
  });

  it("receives one text event per output token", async () => {
    const client = await openClient();
    const stream = client.messages.stream(ask("Hello"));
    let events = 0;
    stream.on("text", () => {
      events += 1;
    });
    const message = await stream.finalMessage();
    expect(events).toBe(message.usage.output_tokens);
  });

  it("gets the stop reason: the stop sequence or the token limit", async () => {
    const client = await openClient();
    const stopped = await client.messages.create({ ...ask("one two HALT three"), stop_sequences: ["HALT"] });
    expect(stopped).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "HALT" });
    expect(readText(stopped)).toMatch(/one two $/u);
    const cut = await client.messages.create({ ...ask("Hello"), max_tokens: 5 });
    expect(cut).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 5 } });
  });

  it("gets a description of its image with type and size", async () => {
    const client = await openClient();
    const message = await client.messages.create(
      ask([
        { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } },
        { type: "text", text: "What is this?" },
      ]),
    );
    expect(readText(message)).toContain("image/png, 1 × 1 pixels, 70 bytes");
  });

  it("gets a call of the named tool with arguments of its schema, and an answer with the result", async () => {
    const client = await openClient();
    const question = ask("Please get weather for Oslo");
    const first = await client.messages.create({ ...question, tools: [WEATHER] });
    expect(first.stop_reason).toBe("tool_use");
    const call = first.content.find((block) => block.type === "tool_use");
    expect(call).toMatchObject({ name: "get_weather", input: { city: expect.any(String) } });
    const second = await client.messages.create({
      ...question,
      tools: [WEATHER],
      messages: [
        ...question.messages,
        { role: "assistant", content: first.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: "14 degrees, rain" }] },
      ],
    });
    expect(second.stop_reason).toBe("end_turn");
    expect(readText(second)).toContain("14 degrees, rain");
  });

  it("receives the arguments of a forced tool as a stream", async () => {
    const client = await openClient();
    const forced = { ...ask("Hi"), tools: [WEATHER], tool_choice: { type: "tool" as const, name: "get_weather" } };
    const whole = await client.messages.create(forced);
    expect(whole.content).toMatchObject([{ type: "tool_use", name: "get_weather" }]);
    expect(await client.messages.stream(forced).finalMessage()).toMatchObject({
      content: whole.content,
      usage: whole.usage,
    });
  });

  it("lists the models and finds one", async () => {
    const client = await openClient();
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toEqual(["claude-opus-4-5-20251101", MODEL, "claude-haiku-4-5-20251001"]);
    expect(await client.models.retrieve(MODEL)).toMatchObject({ id: MODEL, type: "model" });
    await expect(client.models.retrieve("nobody")).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  });

  it.each([
    ["status=429", Anthropic.RateLimitError, 429, "rate_limit_error"],
    ["status=529", Anthropic.InternalServerError, 529, "overloaded_error"],
    ["status=400; message=prompt is too long", Anthropic.BadRequestError, 400, "invalid_request_error"],
    ["status=401", Anthropic.AuthenticationError, 401, "authentication_error"],
  ])("throws its own error class for the fault %s", async (fault, errorClass, status, type) => {
    const client = await openClient({ faults: [{ fault }] });
    const failure: unknown = await client.messages.create(ask("Hello")).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(errorClass);
    expect(failure).toMatchObject({ status, error: { type: "error", error: { type } } });
  });

  it("reads the retry-after header", async () => {
    const client = await openClient({ faults: [{ fault: "status=429; retry-after=7" }] });
    const failure: unknown = await client.messages.create(ask("Hello")).catch((error: unknown) => error);
    expect((failure as InstanceType<typeof Anthropic.RateLimitError>).headers.get("retry-after")).toBe("7");
  });

  it("retries automatically until a fault is exhausted", async () => {
    const simulator = await openSimulator({ faults: [{ fault: "status=529; times=2" }] });
    const client = new Anthropic({ apiKey: "any", authToken: null, baseURL: simulator.url, maxRetries: 2 });
    const message = await client.messages.create(ask("Hello"));
    expect(message.stop_reason).toBe("end_turn");
    expect(simulator.requests.recent.map((entry) => entry.status)).toEqual([529, 529, 200]);
  });

  it("throws for an error during the stream", async () => {
    const client = await openClient({ faults: [{ fault: "error-after=3" }] });
    await expect(client.messages.stream(ask("Hello")).finalMessage()).rejects.toThrow(/api_error/u);
  });

  it("gets an error that names an unknown field", async () => {
    const client = await openClient();
    await expect(client.messages.create(Object.assign(ask("Hello"), { seed: 1 }))).rejects.toThrow(
      "seed: Extra inputs are not permitted",
    );
  });
});
