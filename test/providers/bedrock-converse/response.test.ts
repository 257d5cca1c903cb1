import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Answer } from "../../../src/core/provider.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "../../../src/providers/bedrock-converse/response.ts";
import { toBedrockFailure } from "../../../src/providers/wire/bedrock.ts";
import { EVENT_STREAM } from "../../../src/providers/wire/event-stream.ts";
import { eventFrame, exceptionFrame } from "../../support/bedrock/frames.ts";
import { fold } from "../../support/fold.ts";
import { checkGrammar } from "../grammar.ts";

type Json = Readonly<Record<string, unknown>>;

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../../fixtures/bedrock", name), "utf8"));

const frames = (events: readonly Json[]): Buffer[] =>
  events.map((event) => {
    const [[type, data] = ["", {}]] = Object.entries(event);
    return eventFrame(type, data as object);
  });

const STREAM = frames(fixture("converse-stream.json") as Json[]);

async function readStream(pieces: readonly Buffer[]): Promise<CompletionChunk[]> {
  const parser = await EVENT_STREAM.createParser();
  const reader = new AnswerStream();
  const out: CompletionChunk[] = [];
  for (const piece of pieces) for (const message of parser.push(piece)) reader.read(message, out);
  if (!reader.complete) reader.end(out);
  return out;
}

function split(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut));
}

const partsOf = ({ choices }: Answer): unknown[] =>
  (choices[0]?.message?.parts ?? []).map(({ kind, signature }) => [kind.case, kind.value, signature]);

const toolAnswer = fixture("converse-reasoning.json") as Json;

describe("a whole answer of Converse", () => {
  it("has texts, the finish and usage with cached tokens", () => {
    const { choices, usage } = toAnswer(fixture("converse.json"));
    expect(choices[0]).toMatchObject({ finishReason: FinishReason.STOP, nativeFinishReason: "end_turn" });
    expect(choices[0]!.message!.parts.map(({ kind }) => kind.value)).toEqual([
      "Hello! How can I assist you today?",
      " Ask away.",
    ]);
    expect(usage).toMatchObject({
      inputTokens: 1130,
      outputTokens: 628,
      cachedInputTokens: 1000,
      cacheWriteInputTokens: 100,
      cacheWriteHourInputTokens: 60,
    });
  });

  it("has reasoning with its state, and tool calls", () => {
    expect(partsOf(toAnswer(toolAnswer))).toMatchObject([
      ["reasoning", { text: "A city is meant." }, "c2ln"],
      ["reasoning", { text: "", redacted: "aGlkZGVu" }, ""],
      ["text", "Let me look.", ""],
      ["toolCall", { id: "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", input: { value: '{"city":"Paris"}' } }, ""],
    ]);
    checkGrammar(toAnswerChunks(toolAnswer));
  });

  it("has citations of documents and pages, on the text that cites", () => {
    const content = [
      {
        citationsContent: {
          content: [{ text: "It rains." }],
          citations: [
            {
              title: "Report",
              sourceContent: [{ text: "Rain" }],
              location: { documentPage: { documentIndex: 1, start: 2, end: 3 } },
            },
            { title: "Web", location: { web: { url: "https://example.com", domain: "example.com" } } },
            { title: "Unknown", location: { s3: {} } },
          ],
        },
      },
    ];
    const { choices } = toAnswer({ output: { message: { content } }, stopReason: "end_turn" });
    expect(choices[0]!.message!.parts).toMatchObject([
      {
        kind: { value: "It rains." },
        citations: [
          { title: "Report", citedText: "Rain", source: { value: { documentIndex: 1, start: 2, end: 3 } } },
          { source: { case: "url", value: "https://example.com" } },
        ],
      },
    ]);
  });

  it.each([
    ["end_turn", FinishReason.STOP],
    ["stop_sequence", FinishReason.STOP],
    ["max_tokens", FinishReason.LENGTH],
    ["model_context_window_exceeded", FinishReason.LENGTH],
    ["guardrail_intervened", FinishReason.CONTENT_FILTER],
    ["content_filtered", FinishReason.CONTENT_FILTER],
    ["something_new", FinishReason.OTHER],
  ])("ends with %s", (stopReason, reason) => {
    const json = {
      output: { message: { content: [{ text: "a" }] } },
      stopReason,
      additionalModelResponseFields: { stop_sequence: "END" },
    };
    expect(toAnswer(json).choices[0]).toMatchObject({ finishReason: reason, stopSequence: "END" });
  });

  it.each([
    ["without a stop reason", { output: { message: { content: [] } } }, false],
    ["of another shape", { error: "no" }, false],
    [
      "with a call that its model broke",
      { output: { message: { content: [] } }, stopReason: "malformed_tool_use" },
      true,
    ],
    [
      "with a call without a name",
      { output: { message: { content: [{ toolUse: {} }] } }, stopReason: "tool_use" },
      true,
    ],
  ])("is no answer %s", (_, json, requestBound) => {
    expect(() => toAnswer(json)).toThrow(expect.objectContaining({ code: "upstream_protocol", requestBound }) as Error);
  });

  it("leaves out calls that the provider answers itself", () => {
    const own = { toolUse: { toolUseId: "t", name: "nova_grounding", type: "server_tool_use", input: {} } };
    const json = { output: { message: { content: [own, { text: "a" }] } }, stopReason: "end_turn" };
    expect(partsOf(toAnswer(json))).toEqual([["text", "a", ""]]);
  });
});

describe("a stream of Converse", () => {
  it("has the same answer as the whole one, however its bytes are split", async () => {
    const bytes = Buffer.concat(STREAM);
    const expected = partsOf(toAnswer(toolAnswer));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 60 }), async (places) => {
        const chunks = await readStream(split(bytes, places));
        checkGrammar(chunks);
        const answer = fold(chunks);
        expect(partsOf(answer)).toEqual(expected);
        expect(answer.usage).toEqual(toAnswer(toolAnswer).usage);
      }),
      { numRuns: 50 },
    );
  });

  it("is complete without usage, and incomplete without a stop reason", async () => {
    const { choices, usage } = fold(await readStream(STREAM.slice(0, -1)));
    expect([choices[0]?.finishReason, usage]).toEqual([FinishReason.TOOL_CALLS, undefined]);
    for (let length = 0; length < STREAM.length - 2; length++)
      await expect(readStream(STREAM.slice(0, length))).rejects.toMatchObject({ code: "upstream_protocol" });
  });

  it("gives a call without arguments an empty object", async () => {
    const chunks = await readStream(
      frames([
        { contentBlockStart: { contentBlockIndex: 0, start: { toolUse: { toolUseId: "t", name: "now" } } } },
        { contentBlockStop: { contentBlockIndex: 0 } },
        { messageStop: { stopReason: "tool_use" } },
      ]),
    );
    expect(partsOf(fold(chunks))).toMatchObject([["toolCall", { input: { value: "{}" } }, ""]]);
  });

  it.each<[string, Partial<Failure>]>([
    ["throttlingException", { code: "upstream_rate_limited" }],
    ["modelStreamErrorException", { code: "upstream_unavailable" }],
    ["internalServerException", { code: "upstream_unavailable" }],
    ["serviceUnavailableException", { code: "upstream_unavailable", detail: "upstream_overloaded" }],
    ["modelTimeoutException", { code: "upstream_timeout" }],
    ["validationException", { code: "upstream_rejected" }],
    ["internalFailure", { code: "upstream_unavailable" }],
  ])("ends with %s as with an error of that kind", async (type, failure) => {
    await expect(readStream([exceptionFrame(type, "It says so.")])).rejects.toMatchObject({
      ...failure,
      // A model whose time ran out may have generated.
      refused: type !== "modelTimeoutException",
    });
    await expect(readStream([...STREAM.slice(0, 3), exceptionFrame(type, "It says so.")])).rejects.toMatchObject({
      ...failure,
      refused: false,
      message: "The upstream provider failed while generating the response.",
    });
  });
});

describe("a stream of Converse that fails", () => {
  it("may be billed once reasoning has begun, though its content is encrypted", async () => {
    const start = { messageStart: { role: "assistant" } };
    const delta = { reasoningContent: { redactedContent: "c2VjcmV0" } };
    const reasoning = { contentBlockDelta: { contentBlockIndex: 0, delta } };
    const failed = exceptionFrame("modelStreamErrorException", "It says so.");
    await expect(readStream([...frames([start]), failed])).rejects.toMatchObject({ refused: true });
    await expect(readStream([...frames([start, reasoning]), failed])).rejects.toMatchObject({ refused: false });
  });
});

interface ErrorFixture extends Partial<Failure> {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

describe("a refusal of Bedrock", () => {
  it.each(fixture("errors.json") as ErrorFixture[])("$status $type is $code: $message", (given) => {
    const { status, type, message, ...expected } = given;
    const body = JSON.stringify({ message });
    const header = { "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/` };
    expect(toBedrockFailure({ status, headers: header, body })).toMatchObject(expected);
    // Proxies drop the header; some services name the type in the body.
    const typed = JSON.stringify({ __type: `com.amazon.coral#${type}`, message });
    expect(toBedrockFailure({ status, headers: {}, body: typed })).toMatchObject(expected);
  });

  it("is classified by its status without a type or JSON", () => {
    expect(toBedrockFailure({ status: 503, headers: {}, body: "<html>" }).code).toBe("upstream_unavailable");
  });
});
