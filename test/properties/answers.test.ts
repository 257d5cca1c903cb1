import { create, equals } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  CompletionSchema,
  FinishReason,
} from "../../gen/parley/v1/completion_pb.js";
import { type Message, MessageSchema, Role, type ToolCall, ToolCallSchema } from "../../gen/parley/v1/message_pb.js";
import { ReportSchema } from "../../gen/parley/v1/report_pb.js";
import { toPart } from "../../src/core/chunks.ts";
import type { Answer as ReadAnswer } from "../../src/core/provider.ts";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";
import { toChatCompletion } from "../../src/formats/openai-chat/response.ts";
import { ChunkWriter } from "../../src/formats/openai-chat/stream.ts";
import { parseBodyText } from "../../src/inbound/http/exchange.ts";
import { AnswerStream, toAnswer as readAnthropic } from "../../src/providers/anthropic/response.ts";
import { AnswerStream as GeminiStream, toAnswer as readGemini } from "../../src/providers/gemini/response.ts";
import {
  AnswerStream as OpenAiStreamReader,
  toAnswer as readOpenAiCompletion,
} from "../../src/providers/openai/response.ts";
import {
  AnswerStream as ResponseStream,
  toAnswer as readResponse,
} from "../../src/providers/openai-responses/response.ts";
import { parseExactly } from "../../src/encoding/exact-json.ts";
import type { StreamReader } from "../../src/providers/wire/response.ts";
import { SseParser } from "../../src/providers/wire/sse.ts";
import type { Answer } from "../../src/simulator/answer.ts";
import { encodeEvents as encodeAnthropic, encodeMessage } from "../../src/simulator/anthropic/dialect.ts";
import type { StreamEvent } from "../../src/simulator/dialect.ts";
import { encodeEvents as encodeGemini, encodeResponse } from "../../src/simulator/gemini/response.ts";
import { encodeCompletion, encodeEvents as encodeOpenAi } from "../../src/simulator/openai/dialect.ts";
import { checkGrammar } from "../providers/grammar.ts";
import { fold } from "../support/fold.ts";
import { encodeResponseEvents, encodeWholeResponse } from "../support/responses-wire.ts";
import { toChunks } from "../support/to-chunks.ts";
import { answers, type AnswerShape, listArguments } from "./answers.ts";
import { jsonObject } from "./json-text.ts";

const RUNS = { numRuns: 300 };

interface Dialect {
  readonly name: string;
  readonly shape: AnswerShape;
  readonly encodeWhole: (answer: Answer) => unknown;
  readonly encodeStream: (answer: Answer) => Iterable<StreamEvent>;
  readonly readWhole: (json: unknown) => ReadAnswer;
  readonly createReader: () => StreamReader;
}

const DIALECTS: readonly Dialect[] = [
  {
    name: "anthropic",
    shape: { pictures: false, redacted: true, textBesideCalls: true },
    encodeWhole: (answer) => parseExactly(encodeMessage(answer)),
    encodeStream: encodeAnthropic,
    readWhole: readAnthropic,
    createReader: () => new AnswerStream(),
  },
  {
    name: "gemini",
    shape: { pictures: true, redacted: false, textBesideCalls: true },
    encodeWhole: (answer) => parseExactly(encodeResponse(answer)),
    encodeStream: encodeGemini,
    readWhole: readGemini,
    createReader: () => new GeminiStream(),
  },
  {
    name: "openai",
    shape: { pictures: false, redacted: false, textBesideCalls: false },
    encodeWhole: (answer) => JSON.parse(encodeCompletion([answer])) as unknown,
    encodeStream: (answer) => encodeOpenAi([answer], true),
    readWhole: readOpenAiCompletion,
    createReader: () => new OpenAiStreamReader(),
  },
  {
    name: "openai-responses",
    shape: { pictures: false, redacted: true, textBesideCalls: true },
    encodeWhole: encodeWholeResponse,
    encodeStream: encodeResponseEvents,
    readWhole: readResponse,
    createReader: () => new ResponseStream(),
  },
];

function readStream({ createReader }: Dialect, events: Iterable<StreamEvent>): ReadAnswer {
  const parser = new SseParser();
  const reader = createReader();
  const chunks: CompletionChunk[] = [];
  const bytes = Buffer.from([...events].map((event) => event.text).join(""));
  for (const event of [...parser.push(bytes), ...parser.end()]) if (!reader.complete) reader.read(event, chunks);
  if (!reader.complete) reader.end(chunks);
  checkGrammar(chunks);
  return fold(chunks);
}

/**
 * The answer with the signature of its text on the text. A stream of Gemini's says it in an empty text at the end, which is a part
 * of its own when another kind of part is before it.
 */
function withSignedTexts(answer: ReadAnswer): ReadAnswer {
  for (const { message } of answer.choices) {
    const last = message?.parts.at(-1);
    const text = message?.parts.slice(0, -1).findLast(({ kind }) => kind.case === "text");
    if (message === undefined || last?.kind.case !== "text" || last.kind.value !== "" || text === undefined) continue;
    text.signature = last.signature;
    message.parts.pop();
  }
  return answer;
}

/** A whole answer of an upstream is read from its text, exactly. */
function readWhole({ readWhole: read }: Dialect, json: unknown): ReadAnswer {
  return read(parseExactly(JSON.stringify(json)));
}

describe.each(DIALECTS)("a random answer in the $name dialect", (dialect) => {
  it("is the same read whole and put together from its stream", () => {
    fc.assert(
      fc.property(answers(dialect.shape), (answer) => {
        const whole = readWhole(dialect, dialect.encodeWhole(answer));
        expect(withSignedTexts(readStream(dialect, dialect.encodeStream(answer)))).toEqual(whole);
      }),
      RUNS,
    );
  });

  it("gives the arguments of its calls character by character, whole and streamed", () => {
    fc.assert(
      fc.property(answers(dialect.shape), (answer) => {
        const whole = readWhole(dialect, dialect.encodeWhole(answer));
        const streamed = readStream(dialect, dialect.encodeStream(answer));
        for (const { choices } of [whole, streamed]) {
          expect(argumentsOf(choices[0]?.message)).toEqual(listArguments(answer));
        }
      }),
      RUNS,
    );
  });
});

const calls = fc.array(jsonObject, { minLength: 1, maxLength: 3 });

function answerOf(written: readonly string[]): ReadAnswer {
  const parts = written.map((text, index) => {
    const value = create(ToolCallSchema, {
      id: `call_${index}`,
      name: "get_weather",
      input: { case: "argumentsJson", value: text },
    });
    return toPart({ case: "toolCall", value });
  });
  const message = create(MessageSchema, { role: Role.ASSISTANT, parts });
  const completion = create(CompletionSchema, { choices: [{ message, finishReason: FinishReason.TOOL_CALLS }] });
  return { choices: completion.choices, usage: undefined };
}

describe("the arguments of calls on the way through the OpenAI-compatible entrance", () => {
  it("come back character by character when a client sends the whole answer back", () => {
    fc.assert(
      fc.property(calls, (written) => {
        const answered = toChatCompletion(
          create(CompletionSchema, { id: "chatcmpl-1", ...answerOf(written) }),
          (path) => path,
        );
        const { choices } = JSON.parse(JSON.stringify(answered)) as { choices: { message: object }[] };
        expect(argumentsOf(readBack(choices[0]!.message))).toEqual(written);
      }),
      RUNS,
    );
  });

  it("come back character by character when a client puts a stream together", () => {
    fc.assert(
      fc.property(calls, (written) => {
        const writer = new ChunkWriter({ includeUsage: false, nameOf: (path) => path });
        const start = create(CompletionChunkSchema, {
          event: { case: "start", value: { id: "chatcmpl-1", createTime: { seconds: 1n } } },
        });
        const end = create(CompletionChunkSchema, { event: { case: "report", value: create(ReportSchema) } });
        const events = new SseParser().push(Buffer.from(writer.write([start, ...toChunks(answerOf(written)), end])));
        const said = events
          .filter(({ data }) => data !== "[DONE]")
          .flatMap(({ data }) => (JSON.parse(data) as StreamedChunk).choices[0]?.delta.tool_calls ?? []);
        const toolCalls = written.map((_, at) => ({
          id: `call_${at}`,
          type: "function",
          function: joinCall(said, at),
        }));
        expect(argumentsOf(readBack({ role: "assistant", tool_calls: toolCalls }))).toEqual(written);
      }),
      RUNS,
    );
  });

  it("are the same over gRPC and over HTTP", () => {
    fc.assert(
      fc.property(calls, (written) => {
        const message = answerOf(written).choices[0]!.message!;
        const sent = { role: "assistant", tool_calls: listCalls(message).map(toOpenAiCall) };
        expect(equals(MessageSchema, readBack(sent), message)).toBe(true);
      }),
      RUNS,
    );
  });
});

interface StreamedChunk {
  readonly choices: readonly { readonly delta: { readonly tool_calls?: readonly StreamedCall[] } }[];
}

interface StreamedCall {
  readonly index: number;
  readonly function: { readonly name?: string; readonly arguments: string };
}

function listCalls(message: Message | undefined): ToolCall[] {
  return (message?.parts ?? []).flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : []));
}

function argumentsOf(message: Message | undefined): string[] {
  return listCalls(message).map((call) => call.input.value ?? "");
}

function joinCall(said: readonly StreamedCall[], index: number): { name: string; arguments: string } {
  const pieces = said.filter((piece) => piece.index === index).map((piece) => piece.function);
  return {
    name: pieces.map((piece) => piece.name ?? "").join(""),
    arguments: pieces.map((piece) => piece.arguments).join(""),
  };
}

function toOpenAiCall({ id, name, input }: ToolCall): object {
  return { id, type: "function", function: { name, arguments: input.value } };
}

/** A client's message as our entrance reads it, from the bytes of a request's body. */
function readBack(message: object): Message {
  const body = Buffer.from(JSON.stringify({ model: "any", messages: [message] }));
  return readChatRequest(parseBodyText(body).json).request.messages[0]!;
}
