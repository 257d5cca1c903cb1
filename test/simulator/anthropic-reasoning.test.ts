import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it } from "vitest";
import { openSimulator, post } from "./support/simulators.ts";

const CLAUDE = "claude-sonnet-4-5-20250929";
/** An unlisted model, which supports all features. */
const NEWEST = "claude-newest";

const WEATHER = {
  name: "get_weather",
  input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] },
};

const MANUAL = { type: "enabled", budget_tokens: 1024 } as const;

interface Asked extends Partial<Anthropic.MessageCreateParamsNonStreaming> {
  readonly question?: string;
}

function ask({ question = "What is a tide?", ...more }: Asked = {}): Anthropic.MessageCreateParamsNonStreaming {
  return {
    model: CLAUDE,
    max_tokens: 4000,
    thinking: MANUAL,
    messages: [{ role: "user", content: question }],
    ...more,
  };
}

async function openAnthropic(): Promise<Anthropic> {
  const { url } = await openSimulator();
  return new Anthropic({ apiKey: "any", authToken: null, baseURL: url, maxRetries: 0, logLevel: "off" });
}

describe("reasoning in the Anthropic dialect", () => {
  it.each([
    ["before text", ask(), ["thinking", "text"]],
    ["before a tool call", ask({ question: "Use get_weather", tools: [WEATHER] }), ["thinking", "tool_use"]],
    ["without its text", ask({ thinking: { ...MANUAL, display: "omitted" } }), ["thinking", "text"]],
    ["partly redacted", ask({ question: "Say what was redacted" }), ["thinking", "redacted_thinking", "text"]],
    [
      "in adaptive mode",
      ask({ model: NEWEST, thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "max" } }),
      ["thinking", "text"],
    ],
  ])("is returned %s, whole and streamed alike", async (_, request, types) => {
    const client = await openAnthropic();
    const whole = await client.messages.create(request);
    const streamed = await client.messages.stream(request).finalMessage();
    expect(whole.content.map((block) => block.type)).toEqual(types);
    const strip = (blocks: Anthropic.ContentBlock[]): unknown[] =>
      blocks.map((block) => ({ ...block, citations: null }));
    expect(strip(streamed.content)).toEqual(strip(whole.content));
    expect(streamed.usage).toEqual(whole.usage);
  });

  it("counts as output tokens, and is absent unless requested", async () => {
    const client = await openAnthropic();
    const plain = await client.messages.create(ask({ thinking: { type: "disabled" } }));
    const thought = await client.messages.create(ask());
    expect(plain.content.map((block) => block.type)).toEqual(["text"]);
    const thinkingTokens = thought.usage.output_tokens_details?.thinking_tokens ?? 0;
    expect(thinkingTokens).toBeGreaterThan(0);
    expect(thought.usage.output_tokens).toBe(plain.usage.output_tokens + thinkingTokens);
    expect(thought.content.at(-1)).toEqual(plain.content[0]);
  });

  it("grows with the effort", async () => {
    const client = await openAnthropic();
    const count = async (effort: "low" | "max"): Promise<number> => {
      const { usage } = await client.messages.create(
        ask({ model: NEWEST, thinking: { type: "adaptive" }, output_config: { effort } }),
      );
      return usage.output_tokens_details?.thinking_tokens ?? 0;
    };
    expect(await count("max")).toBeGreaterThan(await count("low"));
  });

  it("counts against the token limit before any other content", async () => {
    const client = await openAnthropic();
    const cut = await client.messages.create(ask({ model: NEWEST, thinking: { type: "adaptive" }, max_tokens: 5 }));
    expect(cut).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 5 } });
    expect(cut.content).toMatchObject([{ type: "thinking", thinking: "" }]);
  });

  it("is accepted unchanged with the result of a call", async () => {
    const client = await openAnthropic();
    const request = ask({ question: "Use get_weather, redacted", tools: [WEATHER] });
    const { content } = await client.messages.create(request);
    const answered = await client.messages.create({ ...request, messages: [...request.messages, ...answer(content)] });
    expect(answered.content.map((block) => block.type)).toContain("text");
  });

  it.each<[string, (content: Anthropic.ContentBlock[]) => unknown[], string]>([
    [
      "its text was changed",
      (content) =>
        content.map((block) => (block.type === "thinking" ? { ...block, thinking: "Something else." } : block)),
      "Invalid `signature` in `thinking` block",
    ],
    [
      "its signature was changed",
      (content) => content.map((block) => (block.type === "thinking" ? { ...block, signature: "EqQB" } : block)),
      "Invalid `signature` in `thinking` block",
    ],
    [
      "its signature was emptied",
      (content) => content.map((block) => (block.type === "thinking" ? { ...block, signature: "" } : block)),
      "Invalid `signature` in `thinking` block",
    ],
    [
      "redacted data was changed",
      (content) => content.map((block) => (block.type === "redacted_thinking" ? { ...block, data: "AAAA" } : block)),
      "Invalid `data` in `redacted_thinking` block",
    ],
    [
      "one block of several is missing",
      (content) => content.filter((block) => block.type !== "redacted_thinking"),
      "blocks in the latest assistant message cannot be modified",
    ],
    [
      "the order of the blocks was changed",
      ([first, second, ...rest]) => [second, first, ...rest],
      "blocks in the latest assistant message cannot be modified",
    ],
    [
      "a call is sent back without its thinking block",
      (content) => content.filter((block) => block.type === "tool_use"),
      "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ],
  ])("is rejected if %s", async (_, change, message) => {
    const client = await openAnthropic();
    const request = ask({ question: "Use get_weather, redacted", tools: [WEATHER] });
    const { content } = await client.messages.create(request);
    const changed = change(content) as Anthropic.ContentBlockParam[];
    const again = client.messages.create({ ...request, messages: [...request.messages, ...answer(content, changed)] });
    await expect(again).rejects.toMatchObject({ status: 400, message: expect.stringContaining(message) });
  });

  it("may be omitted completely in adaptive mode", async () => {
    const client = await openAnthropic();
    const request = ask({
      model: NEWEST,
      thinking: { type: "adaptive" },
      question: "Use get_weather",
      tools: [WEATHER],
    });
    const { content } = await client.messages.create(request);
    const bare = content.filter((block) => block.type !== "thinking");
    const again = await client.messages.create({
      ...request,
      messages: [...request.messages, ...answer(content, bare)],
    });
    expect(again.stop_reason).toBe("end_turn");
  });

  it.each([
    [
      "a budget below 1024 tokens",
      { thinking: { type: "enabled", budget_tokens: 1023 } },
      "greater than or equal to 1024",
    ],
    ["a budget as large as the limit", { max_tokens: 1024, thinking: MANUAL }, "greater than `thinking.budget_tokens`"],
    ["a temperature with thinking", { temperature: 0.5, thinking: MANUAL }, "`temperature` may only be set to 1"],
    ["a small `top_p` with thinking", { top_p: 0.5, thinking: MANUAL }, "`top_p` must be"],
    [
      "a forced tool with thinking",
      { tools: [WEATHER], tool_choice: { type: "any" }, thinking: MANUAL },
      "forces tool use",
    ],
    ["adaptive thinking without model support", { thinking: { type: "adaptive" } }, "not supported on this model"],
    [
      "beta controls without the beta header",
      { model: NEWEST, thinking: { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } } },
      "block_binding: Extra inputs are not permitted",
    ],
  ])("rejects a request with %s", async (_, more, message) => {
    const simulator = await openSimulator();
    const response = await post(simulator, { dialect: "anthropic", body: { ...ask(), ...more } });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(message);
  });
});

/** Returns the next two messages: the answer and the results of its calls. */
function answer(
  content: readonly Anthropic.ContentBlock[],
  sent: readonly Anthropic.ContentBlockParam[] = content,
): Anthropic.MessageParam[] {
  const calls = content.filter((block) => block.type === "tool_use");
  return [
    { role: "assistant", content: [...sent] },
    { role: "user", content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "Sunny" })) },
  ];
}
