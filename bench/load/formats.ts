import type { Load } from "../loads.ts";
import { CONVERSATIONS, MESSAGES } from "./conversations.ts";

type Asked = Pick<Load, "model" | "streamed" | "conversation">;

/** The form of a load in one format of HTTP requests. */
interface RequestFormat {
  readonly path: (asked: Asked) => string;
  /** The body as the format's own client would send it. */
  readonly body: (asked: Asked) => object;
  /** Last bytes of a streamed answer. */
  readonly lastWords: string;
  /** Number of times that a stream repeats each text. */
  readonly repeats: number;
}

/** Last bytes of a stream in the format of OpenAI's chat completions. */
export const CHAT_LAST_WORDS = "data: [DONE]";

const TEMPERATURE = 0.7;
const MAX_TOKENS = 512;
const USER = "visitor-1234";
const [SYSTEM, ...TURNS] = MESSAGES;

/** The formats by Parley's names. All but the first have the short conversation only. */
export const REQUEST_FORMATS = {
  "openai-chat": {
    path: () => "/v1/chat/completions",
    body: ({ model, streamed, conversation = "short" }) => ({
      model,
      ...CONVERSATIONS[conversation](),
      temperature: TEMPERATURE,
      max_tokens: MAX_TOKENS,
      user: USER,
      ...(streamed && { stream: true, stream_options: { include_usage: true } }),
    }),
    lastWords: CHAT_LAST_WORDS,
    repeats: 1,
  },
  "openai-responses": {
    path: () => "/v1/responses",
    body: ({ model, streamed }) => ({
      model,
      input: MESSAGES,
      temperature: TEMPERATURE,
      max_output_tokens: MAX_TOKENS,
      user: USER,
      ...(streamed && { stream: true }),
    }),
    lastWords: "}",
    // A text is in its delta, at the end of the text, of the part and of the item, and in the whole response.
    repeats: 5,
  },
  anthropic: {
    path: () => "/v1/messages",
    body: ({ model, streamed }) => ({
      model,
      system: SYSTEM.content,
      messages: TURNS,
      temperature: TEMPERATURE,
      max_tokens: MAX_TOKENS,
      metadata: { user_id: USER },
      ...(streamed && { stream: true }),
    }),
    // End of the report in `message_stop`.
    lastWords: "}}",
    repeats: 1,
  },
  gemini: {
    path: ({ model, streamed }) =>
      `/v1beta/models/${model}:${streamed ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: () => ({
      systemInstruction: { parts: [{ text: SYSTEM.content }] },
      contents: TURNS.map(({ role, content }) => ({
        role: role === "assistant" ? "model" : role,
        parts: [{ text: content }],
      })),
      generationConfig: { temperature: TEMPERATURE, maxOutputTokens: MAX_TOKENS },
    }),
    lastWords: "}",
    repeats: 1,
  },
} as const satisfies Record<string, RequestFormat>;

export type FormatName = keyof typeof REQUEST_FORMATS;

/** Path and body of a load's requests. */
export function toHttpRequest(asked: Asked, format: FormatName = "openai-chat"): { path: string; body: string } {
  const { path, body }: RequestFormat = REQUEST_FORMATS[format];
  return { path: path(asked), body: JSON.stringify(body(asked)) };
}

/** Number of times that an answer to a load repeats each text. */
export function repeatsOf({ streamed }: Pick<Load, "streamed">, format: FormatName = "openai-chat"): number {
  return streamed ? REQUEST_FORMATS[format].repeats : 1;
}
