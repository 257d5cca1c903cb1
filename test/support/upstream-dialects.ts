/** A scripted answer, independent of the dialect. */
export interface ScriptedAnswer {
  readonly text: string;
  /** Finish reason. Default: `stop`. */
  readonly finish?: "stop" | "length" | "refused";
  /** Ends with this tool call and its finish reason. */
  readonly call?: { readonly name: string; readonly arguments: string };
  /** A PNG in base64, after the text. Gemini only. */
  readonly picture?: string;
  /** Number of identical choices. OpenAI only. */
  readonly choices?: number;
}

/** Usage in every scripted answer. */
export const COUNTED = { prompt: 7, completion: 3 } as const;

/** An answer as events of a stream: the content, and the end. */
interface ScriptedEvents {
  readonly content: string;
  readonly ending: string;
}

/** A provider's wire format from the provider's side, as needed by scripts. */
export interface UpstreamDialect {
  whole(answer: ScriptedAnswer): object;
  /** A whole answer without a finish reason. */
  unfinished(answer: ScriptedAnswer): object;
  events(answer: ScriptedAnswer): ScriptedEvents;
  /** The body of an error response. */
  error(status: number, message: string): object;
  /** An error event within a stream. */
  errorEvent(status: number, message: string): string;
}

type Named = (readonly [status: number, name: string])[];

function nameOf(status: number, names: Named): string {
  return names.find(([known]) => known === status)?.[1] ?? names.at(-1)![1];
}

const event = (data: object, type?: string): string =>
  `${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`;

const ANTHROPIC_STOPS = { stop: "end_turn", length: "max_tokens", refused: "refusal" } as const;
const ANTHROPIC_ERRORS: Named = [
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [529, "overloaded_error"],
  [500, "api_error"],
];

const anthropicUsage = { input_tokens: COUNTED.prompt, output_tokens: COUNTED.completion };

function anthropicMessage(answer: ScriptedAnswer, stopReason: string | null): object {
  const { text, call } = answer;
  const use = call && {
    type: "tool_use",
    id: "toolu_1",
    name: call.name,
    input: JSON.parse(call.arguments) as unknown,
  };
  const content = [{ type: "text", text }, ...(use === undefined ? [] : [use])];
  return { id: "msg_1", type: "message", role: "assistant", content, stop_reason: stopReason, usage: anthropicUsage };
}

const anthropicStop = ({ finish = "stop", call }: ScriptedAnswer): string =>
  call === undefined ? ANTHROPIC_STOPS[finish] : "tool_use";

const typed = (data: { readonly type: string } & Record<string, unknown>): string => event(data, data.type);

export const anthropicWire: UpstreamDialect = {
  whole: (answer) => anthropicMessage(answer, anthropicStop(answer)),
  unfinished: (answer) => anthropicMessage(answer, null),
  events(answer) {
    const { text, call } = answer;
    const block = (index: number, content_block: object, delta: object): string =>
      typed({ type: "content_block_start", index, content_block }) +
      typed({ type: "content_block_delta", index, delta }) +
      typed({ type: "content_block_stop", index });
    const content =
      typed({ type: "message_start", message: { role: "assistant", content: [], usage: anthropicUsage } }) +
      block(0, { type: "text", text: "" }, { type: "text_delta", text }) +
      (call === undefined
        ? ""
        : block(
            1,
            { type: "tool_use", id: "toolu_1", name: call.name, input: {} },
            { type: "input_json_delta", partial_json: call.arguments },
          ));
    const ending =
      typed({ type: "message_delta", delta: { stop_reason: anthropicStop(answer) }, usage: { output_tokens: 3 } }) +
      typed({ type: "message_stop" });
    return { content, ending };
  },
  error: (status, message) => ({ type: "error", error: { type: nameOf(status, ANTHROPIC_ERRORS), message } }),
  errorEvent: (status, message) => typed({ type: "error", error: { type: nameOf(status, ANTHROPIC_ERRORS), message } }),
};

const GEMINI_STOPS = { stop: "STOP", length: "MAX_TOKENS", refused: "SAFETY" } as const;
const GEMINI_ERRORS: Named = [
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [429, "RESOURCE_EXHAUSTED"],
  [503, "UNAVAILABLE"],
  [500, "INTERNAL"],
];

function geminiParts({ text, call, picture }: ScriptedAnswer): object[] {
  return [
    { text },
    ...(picture === undefined ? [] : [{ inlineData: { mimeType: "image/png", data: picture } }]),
    ...(call === undefined ? [] : [{ functionCall: { name: call.name, args: JSON.parse(call.arguments) as unknown } }]),
  ];
}

const geminiUsage = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };
const geminiCandidate = (candidate: object): object => ({
  candidates: [{ index: 0, ...candidate }],
  usageMetadata: geminiUsage,
});
const geminiContent = (answer: ScriptedAnswer): object => ({ content: { role: "model", parts: geminiParts(answer) } });
const geminiFinish = ({ finish = "stop" }: ScriptedAnswer): object => ({ finishReason: GEMINI_STOPS[finish] });
const geminiError = (status: number, message: string): object => ({
  error: { code: status, message, status: nameOf(status, GEMINI_ERRORS) },
});

export const geminiWire: UpstreamDialect = {
  whole: (answer) => geminiCandidate({ ...geminiContent(answer), ...geminiFinish(answer) }),
  unfinished: (answer) => geminiCandidate(geminiContent(answer)),
  events: (answer) => ({
    content: event(geminiCandidate(geminiContent(answer))),
    ending: event(geminiCandidate({ content: { role: "model", parts: [] }, ...geminiFinish(answer) })),
  }),
  error: geminiError,
  errorEvent: (status, message) => event(geminiError(status, message)),
};

const OPENAI_STOPS = { stop: "stop", length: "length", refused: "content_filter" } as const;
const OPENAI_ERRORS: Named = [
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [429, "rate_limit_error"],
  [529, "overloaded_error"],
  [500, "server_error"],
];

const openAiUsage = { prompt_tokens: COUNTED.prompt, completion_tokens: COUNTED.completion, total_tokens: 10 };
const openAiStop = ({ finish = "stop", call }: ScriptedAnswer): string =>
  call === undefined ? OPENAI_STOPS[finish] : "tool_calls";
const openAiError = (status: number, message: string): object => ({
  error: { message, type: nameOf(status, OPENAI_ERRORS), param: null, code: null },
});

function openAiChoices({ choices = 1 }: ScriptedAnswer, choice: object): object[] {
  return Array.from({ length: choices }, (_, index) => ({ index, ...choice }));
}

function openAiSpeech({ text, call }: ScriptedAnswer): object {
  const toolCalls = call && [{ index: 0, id: "call_1", type: "function", function: call }];
  return { role: "assistant", content: text, ...(toolCalls !== undefined && { tool_calls: toolCalls }) };
}

const openAiCompletion = (answer: ScriptedAnswer, finishReason: string | null): object => ({
  object: "chat.completion",
  choices: openAiChoices(answer, { message: openAiSpeech(answer), finish_reason: finishReason }),
  usage: openAiUsage,
});

export const openAiWire: UpstreamDialect = {
  whole: (answer) => openAiCompletion(answer, openAiStop(answer)),
  unfinished: (answer) => openAiCompletion(answer, null),
  events: (answer) => ({
    content: event({ choices: openAiChoices(answer, { delta: openAiSpeech(answer), finish_reason: null }) }),
    ending:
      event({ choices: openAiChoices(answer, { delta: {}, finish_reason: openAiStop(answer) }) }) +
      event({ choices: [], usage: openAiUsage }) +
      "data: [DONE]\n\n",
  }),
  error: openAiError,
  errorEvent: (status, message) => event(openAiError(status, message)),
};
