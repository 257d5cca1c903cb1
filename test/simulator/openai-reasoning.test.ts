import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { openSimulator } from "./support/simulators.ts";

describe("reasoning in the OpenAI dialect", () => {
  const REQUEST = {
    model: "gpt-5-mini",
    messages: [{ role: "user" as const, content: "What is a tide?" }],
    reasoning_effort: "medium" as const,
  };

  async function openOpenAi(): Promise<OpenAI> {
    const { url } = await openSimulator();
    return new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
  }

  it("is returned as `reasoning_content` before the answer, whole and streamed alike", async () => {
    const client = await openOpenAi();
    const whole = await client.chat.completions.create(REQUEST);
    const stream = await client.chat.completions.create({
      ...REQUEST,
      stream: true,
      stream_options: { include_usage: true },
    });
    const streamed = { reasoning_content: "", content: "" };
    const late: string[] = [];
    let usage: unknown;
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta as { reasoning_content?: string; content?: string } | undefined;
      if (delta?.reasoning_content && streamed.content !== "") late.push(delta.reasoning_content);
      streamed.reasoning_content += delta?.reasoning_content ?? "";
      streamed.content += delta?.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(late).toEqual([]);
    expect(streamed.reasoning_content).toMatch(/What is a tide/u);
    expect(whole.choices[0]?.message).toMatchObject(streamed);
    expect(usage).toEqual(whole.usage);
  });

  it.each([{ reasoning_effort: "none" as const }, {}])("is absent with %o", async (effort) => {
    const client = await openOpenAi();
    const { model, messages } = REQUEST;
    const { choices, usage } = await client.chat.completions.create({ model, messages, ...effort });
    expect(choices[0]?.message).not.toHaveProperty("reasoning_content");
    expect(usage?.completion_tokens_details?.reasoning_tokens).toBe(0);
  });

  it("counts as completion tokens", async () => {
    const client = await openOpenAi();
    const plain = await client.chat.completions.create({ ...REQUEST, reasoning_effort: "none" });
    const { usage } = await client.chat.completions.create(REQUEST);
    const reasoned = usage?.completion_tokens_details?.reasoning_tokens ?? 0;
    expect(reasoned).toBeGreaterThan(0);
    expect(usage?.completion_tokens).toBe((plain.usage?.completion_tokens ?? 0) + reasoned);
  });
});
