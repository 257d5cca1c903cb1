import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";
import { readMessagesRequest } from "../../src/formats/anthropic/request.ts";
import { toMessage } from "../../src/formats/anthropic/response.ts";
import type { NameOf } from "../../src/formats/format.ts";
import { FunctionNames } from "../../src/formats/gemini/function-names.ts";
import { readGeminiRequest } from "../../src/formats/gemini/request.ts";
import { writeGeminiResponse } from "../../src/formats/gemini/response.ts";
import type { JsonText } from "../../src/formats/held-strings.ts";
import { readResponsesRequest } from "../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../src/formats/openai-responses/response.ts";
import { completionOf, histories, type History, messagesOf, type Result, shortened, type Turn } from "./histories.ts";

type Json = Readonly<Record<string, unknown>>;

/** A format from a client's side: what a client sends of the conversation that it kept, and how the gateway reads it. */
interface Client {
  readonly format: string;
  /** The request with the whole conversation: the answers as they came, the rest in the words of the format. */
  readonly send: (history: History) => Json;
  readonly read: (json: Json) => { readonly request: CompletionRequest; readonly nameOf: NameOf };
}

const parse = (json: JsonText): Json =>
  JSON.parse(typeof json === "string" ? json : Buffer.concat(json).toString()) as Json;
const nameless: NameOf = (path) => path;

function base64Of(part: Part): string {
  if (part.kind.case !== "image") throw new RangeError("not a picture");
  return Buffer.from(part.kind.value.source.value as Uint8Array).toString("base64");
}

const textOf = ({ kind }: Part): string | undefined => (kind.case === "text" ? kind.value : undefined);

/** The turns of a conversation in the words of a format. */
function eachTurn<T>(
  turns: readonly Turn[],
  write: {
    user(parts: readonly Part[]): T[];
    answer(parts: readonly Part[]): T[];
    results(given: readonly Result[]): T[];
  },
): T[] {
  return turns.flatMap((turn) => {
    if (turn.by === "user") return write.user(turn.parts);
    return [...write.answer(turn.parts), ...(turn.results.length === 0 ? [] : write.results(turn.results))];
  });
}

const ASKED = { model: "m", input: "", include: ["reasoning.encrypted_content"] };

/** Not those of chat completions, which have no order of texts and calls. */
const CLIENTS: readonly Client[] = [
  {
    format: "openai-responses",
    send: ({ instructions, turns }) => ({
      ...ASKED,
      instructions,
      input: eachTurn<unknown>(turns, {
        user: (parts) => [
          {
            role: "user",
            content: parts.map((part) =>
              textOf(part) === undefined
                ? { type: "input_image", image_url: `data:image/png;base64,${base64Of(part)}` }
                : { type: "input_text", text: textOf(part) },
            ),
          },
        ],
        answer: (parts) =>
          parse(writeResponse(completionOf(parts), readResponsesRequest(ASKED)))["output"] as unknown[],
        results: (given) =>
          given.map(({ toolCallId, response }) => ({
            type: "function_call_output",
            call_id: toolCallId,
            output: JSON.stringify(response),
          })),
      }),
    }),
    read: readResponsesRequest,
  },
  {
    format: "anthropic",
    send: ({ instructions, turns }) => ({
      model: "m",
      system: instructions,
      messages: eachTurn<unknown>(turns, {
        user: (parts) => [
          {
            role: "user",
            content: parts.map((part) =>
              textOf(part) === undefined
                ? { type: "image", source: { type: "base64", media_type: "image/png", data: base64Of(part) } }
                : { type: "text", text: textOf(part) },
            ),
          },
        ],
        answer: (parts) => {
          const form = { nameOf: nameless, hidesThinking: false, inputTokens: 0 };
          const { content } = toMessage(completionOf(parts), form) as { content: unknown };
          return [{ role: "assistant", content }];
        },
        results: (given) => [
          {
            role: "user",
            content: given.map(({ toolCallId, response }) => ({
              type: "tool_result",
              tool_use_id: toolCallId,
              content: JSON.stringify(response),
            })),
          },
        ],
      }),
    }),
    read: (json) => readMessagesRequest({ json, headers: {} }),
  },
  {
    format: "gemini",
    send: ({ instructions, turns }) => ({
      ...(instructions !== "" && { systemInstruction: { parts: [{ text: instructions }] } }),
      contents: eachTurn<unknown>(turns, {
        user: (parts) => [
          {
            role: "user",
            parts: parts.map((part) =>
              textOf(part) === undefined
                ? { inlineData: { mimeType: "image/png", data: base64Of(part) } }
                : { text: textOf(part) },
            ),
          },
        ],
        answer: (parts) => {
          const facts = { nameOf: nameless, includeThoughts: false, functionNames: new FunctionNames() };
          const written = parse(writeGeminiResponse(completionOf(parts), facts));
          return (written["candidates"] as { content: unknown }[]).map(({ content }) => content);
        },
        results: (given) => [
          {
            role: "user",
            parts: given.map(({ toolCallId: id, name, response }) => ({ functionResponse: { id, name, response } })),
          },
        ],
      }),
    }),
    read: (json) => readGeminiRequest(json, "m"),
  },
];

/** The value at a path of either style, such as `input[1].content[0]` and `messages.0.content.1`. */
function valueAt(json: unknown, path: string): unknown {
  const keys = path.split(/[.[\]]+/).filter((key) => key !== "");
  return keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], json);
}

describe.each(CLIENTS)("a conversation that a client of $format kept", ({ send, read }) => {
  it("is the same in the contract, turn by turn, with the state of its answers", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const { request } = read(structuredClone(send(history)));
        expect(shortened(request.messages)).toEqual(shortened(messagesOf(history)));
      }),
    );
  });

  it("has at the name of each of its parts what the part says", () => {
    fc.assert(
      fc.property(histories, (history) => {
        const json = send(history);
        const { request, nameOf } = read(structuredClone(json));
        request.messages.forEach(({ parts }, message) =>
          parts.forEach((part, at) => {
            const name = nameOf(`messages[${message}].parts[${at}]`);
            expect(stringsOf(valueAt(json, name)), name).toSatisfy((found: string[]) => isSaid(part, found));
          }),
        );
      }),
    );
  });
});

/** All strings of a JSON value. */
function stringsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsOf) : [];
}

/** Whether these are the strings of a part: its text or the beginning of it, its ID, or anything that it is hidden in. */
function isSaid({ kind }: Part, found: readonly string[]): boolean {
  switch (kind.case) {
    case "text":
      return found.some((text) => text !== "" && kind.value.startsWith(text));
    case "toolCall":
      return found.includes(kind.value.id);
    case "toolResult":
      return found.includes(kind.value.toolCallId);
    default:
      return found.length > 0;
  }
}
