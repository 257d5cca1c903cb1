import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, type CompletionRequestSchema, FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { AudioSchema, ImageSchema, MessageSchema, type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { ChoiceWriter, finishChunk, toPart } from "../../src/core/chunks.ts";
import { type CompletionContent, ContentRecorder, MAX_CONTENT_BYTES } from "../../src/core/content.ts";
import { Base64, EncodedSource } from "../../src/encoding/base64.ts";
import { callMessage, message, requestTo, resultMessage } from "./requests.ts";
import { somebody } from "../support/core-ports.ts";

type Asked = MessageInitShape<typeof CompletionRequestSchema>;

/** What is stored of a completion that `run` records. */
function stored(run: (recorder: ContentRecorder) => void): CompletionContent {
  const contents: CompletionContent[] = [];
  const recorder = new ContentRecorder(
    { store: (content) => void contents.push(content) },
    { principal: somebody, completionId: "chatcmpl-1" },
  );
  recorder.admitted();
  run(recorder);
  recorder.end();
  expect(contents).toHaveLength(1);
  return contents[0]!;
}

const storedRequest = (asked: Asked): CompletionContent => stored((recorder) => recorder.asked(requestTo(asked)));

const storedStream = (...batches: (readonly CompletionChunk[])[]): CompletionContent =>
  stored((recorder) => {
    recorder.asked(requestTo());
    for (const batch of batches) recorder.add(batch);
  });

const textsOf = (parts: readonly Part[] = []): unknown[] => parts.map(({ kind }) => kind.value);
const textsOfMessages = ({ request }: CompletionContent): unknown[] =>
  request.messages.flatMap(({ parts }) => textsOf(parts));

const PARLEY_KEY = "sk_parley_abcdefghijklmnopqrstuvwxyz0123456789";
const PROVIDER_KEY = `sk-proj-${"a1".repeat(20)}`;

describe("the stored request", () => {
  it("has the conversation, the tools and the parameters", () => {
    const tool = create(ToolSchema, {
      kind: { case: "function", value: { name: "f", description: "Does.", parametersJson: '{"type":"object"}' } },
    });
    const asked = {
      messages: [message(Role.SYSTEM, "Be brief."), message(Role.USER, "Hi."), callMessage("c1"), resultMessage("c1")],
      tools: [tool],
      temperature: 0.5,
      stopSequences: ["END"],
      maxOutputTokens: 10,
    };
    const { request, isRequestCut, accountId, completionId } = storedRequest(asked);
    expect({ accountId, completionId, isRequestCut }).toEqual({
      accountId: somebody.accountId,
      completionId: "chatcmpl-1",
      isRequestCut: false,
    });
    expect(request).toEqual(requestTo(asked));
  });

  it("has no signatures, no identifiers and no metadata", () => {
    const { request } = storedRequest({
      messages: [
        message(Role.USER, "Hi."),
        create(MessageSchema, { parts: [toPart({ case: "text", value: "So." }, "state")] }),
      ],
      endUserId: "ann",
      sessionId: "run",
      metadata: { team: "a" },
      prediction: "So.",
    });
    expect(request).toMatchObject({ metadata: {} });
    expect(request.messages[1]!.parts[0]).toEqual(toPart({ case: "text", value: "So." }));
    expect([request.endUserId, request.sessionId, request.prediction]).toEqual([undefined, undefined, undefined]);
  });

  it("describes pictures and other bytes", () => {
    const encoded = Base64.read([Buffer.from(Buffer.alloc(3_000).toString("base64"))])!;
    const image = create(ImageSchema, { mediaType: "image/png" });
    image.source = new EncodedSource(encoded);
    const parts: Part[] = [
      toPart({ case: "image", value: image }),
      toPart({ case: "audio", value: create(AudioSchema, { source: { case: "data", value: new Uint8Array(10) } }) }),
      toPart({
        case: "image",
        value: create(ImageSchema, { source: { case: "url", value: "https://example.com/a" } }),
      }),
    ];
    const result = toPart({
      case: "toolResult",
      value: { $typeName: "parley.v1.ToolResult", toolCallId: "c1", isError: false, parts: [parts[0]!] },
    });
    const content = storedRequest({
      messages: [create(MessageSchema, { role: Role.USER, parts: [...parts, result] })],
    });
    expect(textsOfMessages(content)).toMatchObject([
      "[image/png, 3 KB: not stored]",
      "[audio, 1 KB: not stored]",
      "[image https://example.com/a: not stored]",
      { parts: [{ kind: { value: "[image/png, 3 KB: not stored]" } }] },
    ]);
  });

  it("has no API keys and no credentials of providers", () => {
    const words = [
      "AKIAIOSFODNN7EXAMPLEX",
      `AIza${"b".repeat(35)}`,
      PROVIDER_KEY,
      PARLEY_KEY,
      `{"a":"\\n${PROVIDER_KEY}"}`,
    ];
    const [text] = textsOfMessages(
      storedRequest({ messages: [message(Role.USER, `${words.join(" ")} task-list-of-2026-x`)] }),
    );
    expect(text).toBe(
      'AKIA[redacted] AIza[redacted] sk-[redacted] sk_parley_[redacted] {"a":"\\nsk-[redacted]"} task-list-of-2026-x',
    );
  });

  it("loses tools first, then the earliest messages, when it is too large", () => {
    const long = "x".repeat(100 * 1024);
    const content = storedRequest({
      messages: [
        message(Role.SYSTEM, "Be brief."),
        message(Role.USER, `1${long}`),
        message(Role.ASSISTANT, `2${long}`),
        message(Role.USER, `3${long}`),
      ],
      tools: [create(ToolSchema, { kind: { case: "function", value: { name: "f" } } })],
    });
    const texts = textsOfMessages(content) as string[];
    expect(texts.map((text) => text.slice(0, 2))).toEqual(["Be", "1x", "2x", "3x"]);
    expect(texts[1]!.length).toBeLessThan(60 * 1024);
    expect(texts[3]).toBe(`3${long}`);
    expect(content).toMatchObject({ isRequestCut: true, isAnswerCut: false, request: { tools: [] } });
    expect(content.bytes).toBe(MAX_CONTENT_BYTES);
  });

  it("is cut between characters, and has no beginning of a credential", () => {
    const fill = "ä".repeat(MAX_CONTENT_BYTES / 2 - 60);
    const [text] = textsOfMessages(
      storedRequest({ messages: [message(Role.USER, `${fill} ${PROVIDER_KEY} ${fill}`)] }),
    );
    expect(text).toMatch(/^ä+ sk-\[redacted\] ä+$/);
    expect(Buffer.byteLength(String(text))).toBeLessThanOrEqual(MAX_CONTENT_BYTES);
    expect(Buffer.byteLength(String(text))).toBeGreaterThan(MAX_CONTENT_BYTES - 100);
  });
});

describe("the stored answer", () => {
  it("is the same of a stream as of a whole answer", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.text({ case: "reasoning", value: "Well" }, out);
    writer.text({ case: "text", value: "It is" }, out);
    writer.text({ case: "text", value: ` ${PARLEY_KEY}` }, out);
    const call = writer.beginCall({ id: "c1", name: "f" }, "", out);
    writer.arguments(call, '{"a":', out);
    writer.arguments(call, "1}", out);
    writer.endCall(call, out);
    out.push(finishChunk(0, { reason: FinishReason.TOOL_CALLS, native: "tool_calls" }));
    const { choices, isAnswerCut } = storedStream(out.slice(0, 3), out.slice(3));
    expect(isAnswerCut).toBe(false);
    expect(choices).toMatchObject([{ finishReason: FinishReason.TOOL_CALLS, message: { role: Role.ASSISTANT } }]);
    expect(textsOf(choices[0]!.message?.parts)).toMatchObject([
      { text: "Well" },
      "It is sk_parley_[redacted]",
      { id: "c1", name: "f", input: { value: '{"a":1}' } },
    ]);
    const whole = stored((recorder) => {
      recorder.asked(requestTo());
      recorder.answered(choices);
    });
    expect(whole.choices).toEqual(choices);
  });

  it("describes a picture and the recording of a stream", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    const image = create(ImageSchema, { mediaType: "image/webp", source: { case: "data", value: new Uint8Array(5) } });
    writer.whole(toPart({ case: "image", value: image }), out);
    for (const transcript of ["Good ", "day"])
      writer.audio(
        create(AudioSchema, {
          mediaType: "audio/wav",
          transcript,
          source: { case: "data", value: new Uint8Array(1_500) },
        }),
        out,
      );
    writer.endFlow(out);
    const { choices } = storedStream(out);
    expect(textsOf(choices[0]!.message?.parts)).toEqual([
      "[image/webp, 1 KB: not stored]",
      "[audio/wav, 3 KB: not stored]\nGood day",
    ]);
  });

  it("is cut at the limit, and says so", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    for (let at = 0; at < 100; at++) writer.text({ case: "text", value: "y".repeat(4 * 1024) }, out);
    out.push(finishChunk(0, { reason: FinishReason.STOP, native: "stop" }));
    const { choices, isAnswerCut, isRequestCut } = storedStream(out);
    const [text] = textsOf(choices[0]!.message?.parts) as string[];
    expect({ isAnswerCut, isRequestCut, reason: choices[0]!.finishReason }).toEqual({
      isAnswerCut: true,
      isRequestCut: false,
      reason: FinishReason.STOP,
    });
    expect(text!.length).toBeLessThanOrEqual(MAX_CONTENT_BYTES);
    expect(text!.length).toBeGreaterThan(MAX_CONTENT_BYTES - 100);
  });

  it("of a failed completion is as much as came", () => {
    const { request, choices } = stored((recorder) => recorder.asked(requestTo()));
    expect(request.messages).toHaveLength(1);
    expect(choices).toEqual([]);
  });
});

it("nothing is stored of a completion that is not admitted", () => {
  const contents: CompletionContent[] = [];
  const recorder = new ContentRecorder(
    { store: (content) => void contents.push(content) },
    { principal: somebody, completionId: "chatcmpl-1" },
  );
  recorder.asked(requestTo());
  recorder.end();
  expect(contents).toEqual([]);
});
