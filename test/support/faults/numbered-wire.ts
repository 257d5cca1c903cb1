import { anthropicWire, geminiWire, openAiWire, type UpstreamDialect } from "../upstream-dialects.ts";
import type { CallPlan } from "./call-plan.ts";

/** A response with numbered tokens in a provider's wire format. */
export interface NumberedAnswer {
  readonly texts: readonly string[];
  readonly usage: CallPlan["usage"];
  /** Whether it has a finish reason. */
  readonly finished: boolean;
}

/** Events of a stream: one per token, and those before and after. */
interface NumberedEvents {
  readonly opening: readonly object[];
  readonly tokens: readonly object[];
  /** The first of these has the finish reason. Empty if the last token has it. */
  readonly closing: readonly object[];
  /** End marker; undefined if only the body's end marks it. */
  readonly marker: object | string | undefined;
}

/** A provider's wire format, from the provider's side. */
export interface NumberedWire {
  /** Its error responses. */
  readonly errors: UpstreamDialect;
  whole(answer: NumberedAnswer): object;
  events(answer: NumberedAnswer): NumberedEvents;
}

const anthropicUsage = ({ prompt, completion }: CallPlan["usage"]): object => ({
  input_tokens: prompt,
  output_tokens: completion,
});

const anthropic: NumberedWire = {
  errors: anthropicWire,
  whole: ({ texts, usage, finished }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: texts.join("") }],
    stop_reason: finished ? "end_turn" : null,
    usage: anthropicUsage(usage),
  }),
  events: ({ texts, usage, finished }) => ({
    opening: [
      { type: "message_start", message: { role: "assistant", content: [], usage: { input_tokens: usage.prompt } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "ping" },
    ],
    tokens: texts.map((text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })),
    closing: finished
      ? [
          { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: usage.completion } },
          { type: "content_block_stop", index: 0 },
        ]
      : [{ type: "content_block_stop", index: 0 }],
    marker: { type: "message_stop" },
  }),
};

function geminiAnswer(text: string, usage: CallPlan["usage"], finishes: boolean): object {
  const { prompt, completion } = usage;
  return {
    candidates: [
      { index: 0, content: { role: "model", parts: [{ text }] }, ...(finishes && { finishReason: "STOP" }) },
    ],
    usageMetadata: {
      promptTokenCount: prompt,
      candidatesTokenCount: completion,
      totalTokenCount: prompt + completion,
    },
  };
}

const gemini: NumberedWire = {
  errors: geminiWire,
  whole: ({ texts, usage, finished }) => geminiAnswer(texts.join(""), usage, finished),
  events: ({ texts, usage, finished }) => ({
    opening: [],
    tokens: texts.map((text, index) => geminiAnswer(text, usage, finished && index === texts.length - 1)),
    closing: [],
    marker: undefined,
  }),
};

const openAiUsage = ({ prompt, completion }: CallPlan["usage"]): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

const openAiChunk = (delta: object, finishReason: string | null): object => ({
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason: finishReason }],
});

const openAi: NumberedWire = {
  errors: openAiWire,
  whole: ({ texts, usage, finished }) => ({
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: texts.join("") },
        finish_reason: finished ? "stop" : null,
      },
    ],
    usage: openAiUsage(usage),
  }),
  events: ({ texts, usage, finished }) => ({
    opening: [openAiChunk({ role: "assistant", content: "" }, null)],
    tokens: texts.map((content) => openAiChunk({ content }, null)),
    closing: finished ? [openAiChunk({}, "stop"), { choices: [], usage: openAiUsage(usage) }] : [],
    marker: "[DONE]",
  }),
};

/** The three wire formats. */
export const NUMBERED_WIRES = { anthropic, gemini, openai: openAi } as const satisfies Record<string, NumberedWire>;

export type WireName = keyof typeof NUMBERED_WIRES;
