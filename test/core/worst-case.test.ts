import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, type PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { worstCase } from "../../src/core/cost.ts";
import { measurePrompt } from "../../src/core/token-estimate.ts";
import { toAnthropicRequest } from "../../src/providers/anthropic/request.ts";
import { toGeminiRequest } from "../../src/providers/gemini/request.ts";
import { toOpenAiRequest } from "../../src/providers/openai/request.ts";
import { toResponsesRequest } from "../../src/providers/openai-responses/request.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { toPrice } from "../support/prices.ts";
import { modelOf, PLAINLY_SENT, ScriptedProvider } from "../support/scripted-provider.ts";
import { callMessage, message, requestTo, resultMessage } from "./requests.ts";

/** One micro-USD for each token of the prompt, and nothing for the answer. */
const price = toPrice({ input: 1_000_000, cachedInput: 1_000_000, output: 0, imageOutput: 0 });
const contextWindow = 100_000;
const inputModalities = new Set([Modality.TEXT, Modality.AUDIO, Modality.IMAGE]);
const model = modelOf("a", new ScriptedProvider(new FakeClock(), {}), {
  price,
  upstream: {
    contextWindow,
    maxOutputTokens: 10,
    defaultMaxTokens: 10,
    inputModalities,
    outputModalities: inputModalities,
  },
});

const SENT = { ...PLAINLY_SENT, textBytes: 10, maxTokens: undefined };

const LONG = "x".repeat(2_000);

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** The tokens of the prompt that money is held for. */
function held(asked: MessageInitShape<typeof CompletionRequestSchema>): number | undefined {
  const request = requestTo(asked);
  const prompt = measurePrompt(request);
  return worstCase(request, { prompt, sent: toOpenAiRequest(request, model.upstream, { mode: "whole" }).sent }, [model])
    .costMicroUsd;
}

function withPart(kind: NonNullable<MessageInitShape<typeof PartSchema>["kind"]>): number | undefined {
  return held({ messages: [create(MessageSchema, { role: Role.USER, parts: [{ kind }] })] });
}

describe("the money that is held for a prompt", () => {
  it("is that of a token for every byte of its text", () => {
    const empty = held({ messages: [message(Role.USER, "x")] })!;
    expect(held({ messages: [message(Role.USER, "x".repeat(500))] })).toBe(empty + 499);
  });

  it.each<[string, MessageInitShape<typeof CompletionRequestSchema>]>([
    [
      "a schema's description",
      { responseFormat: { format: { case: "jsonSchema", value: { name: "s", description: LONG, schemaJson: "{}" } } } },
    ],
    ["the name of an end user", { endUserId: LONG }],
    ["a text that ends the answer", { stopSequences: [LONG] }],
    ["the key of a prompt cache", { promptCacheKey: LONG }],
  ])("counts every text that is sent: %s", (_, asked) => {
    expect(held(asked)).toBeGreaterThanOrEqual(LONG.length);
  });

  it("counts the ID of a tool call where a dialect sends it as it is", () => {
    const asked = requestTo({
      messages: [message(Role.USER, "Hi."), callMessage(LONG), resultMessage(LONG, "Done.")],
    });
    expect(toGeminiRequest(asked, model.upstream, { mode: "whole" }).sent.textBytes).toBeGreaterThan(2 * LONG.length);
  });

  it("counts the bytes of a picture once, as a picture", () => {
    const source = { case: "data" as const, value: Buffer.concat([PNG, new Uint8Array(50_000)]) };
    expect(withPart({ case: "image", value: { source, mediaType: "image/png" } })).toBeLessThan(49_000);
  });

  it.each([
    ["a document", Buffer.from("%PDF-1.7")],
    ["a video", Buffer.from("\0\0\0\x18ftypmp42")],
    ["a recording in RIFF", Buffer.from("RIFF\x24\0\0\0WAVE")],
  ])("is that of the whole context window for %s that is called a picture", (_, value) => {
    const source = { case: "data" as const, value };
    expect(withPart({ case: "image", value: { source, mediaType: "image/png" } })).toBe(contextWindow);
  });

  it.each(["application/pdf", "audio/mpeg", "image/svg+xml"])(
    "is that of the whole context window for what has the head of a picture and the type %s",
    (mediaType) => {
      const source = { case: "data" as const, value: Buffer.concat([PNG, Buffer.from("%PDF-1.7")]) };
      expect(withPart({ case: "image", value: { source, mediaType } })).toBe(contextWindow);
    },
  );

  it("is that of a cache write where the host charges for it, whether or not it was asked for", () => {
    const dear = { ...model, price: { ...price, cacheWrite: 2_000_000, cacheWriteHour: 3_000_000 } };
    const hold = (text: string): number => {
      const request = requestTo({ messages: [message(Role.USER, text)] });
      const { sent } = toOpenAiRequest(request, model.upstream, { mode: "whole" });
      return worstCase(request, { prompt: measurePrompt(request), sent }, [dear]).costMicroUsd!;
    };
    expect(hold("x".repeat(500)) - hold("x")).toBe(499 * 3);
  });

  it("is that of the whole context window for a picture by address, where the provider may read anything", () => {
    const source = { case: "url" as const, value: "https://pictures.example/1.png" };
    expect(withPart({ case: "image", value: { source } })).toBe(contextWindow);
  });

  it("is that of the whole context window for a document, which may have any number of pages", () => {
    const source = { case: "data" as const, value: new Uint8Array(100) };
    expect(withPart({ case: "file", value: { source, mediaType: "application/pdf" } })).toBe(contextWindow);
  });

  /** An ID3 tag of two bytes. */
  const TAG = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 2, 0, 0]);
  const wave = (format: number, samplesPerSecond: number): Buffer => {
    const bytes = Buffer.concat([Buffer.from("RIFF\x24\0\0\0WAVEfmt \x10\0\0\0"), Buffer.alloc(8)]);
    bytes.writeUInt16LE(format, 20);
    bytes.writeUInt32LE(samplesPerSecond, 24);
    return bytes;
  };
  const header = (...bytes: readonly number[]): Uint8Array => Buffer.concat([Buffer.from(bytes), Buffer.alloc(100)]);
  it.each([
    ["WAV", wave(1, 8_000), "audio/wav"],
    ["WAV with mu-law", wave(7, 8_000), "audio/x-wav"],
  ])("is that of a token for every byte of a recording in %s", (_, value, mediaType) => {
    const audio = { kind: { case: "audio" as const, value: { source: { case: "data" as const, value }, mediaType } } };
    const parts = [{ kind: { case: "text" as const, value: "x" } }];
    const size = (also: readonly (typeof audio)[]): number | undefined => {
      const request = requestTo({ messages: [create(MessageSchema, { role: Role.USER, parts: [...parts, ...also] })] });
      return worstCase(request, { prompt: measurePrompt(request), sent: SENT }, [model]).costMicroUsd;
    };
    expect(size([audio])! - size([])!).toBe(28);
  });

  it.each<[string, Uint8Array, object?]>([
    ["FLAC", header(...Buffer.from("fLaC"))],
    ["FLAC with a title", Buffer.concat([TAG, Buffer.from("fLaC"), Buffer.alloc(100)])],
    ["FLAC in WAV", wave(0xf1ac, 8_000)],
    ["WAV with a sample per second", wave(1, 1)],
    ["MP3", header(0xff, 0xfb, 0x90)],
    ["MP3 with a title", Buffer.concat([TAG, header(0xff, 0xfb, 0x90)])],
    ["nothing but a tag", TAG],
    ["Opus", header(...Buffer.from("OggS"))],
    ["AAC", header(0xff, 0xf1, 0x50)],
    ["nothing known", header(0)],
    ["a type that its head contradicts", wave(1, 8_000), { mediaType: "audio/mpeg" }],
    ["an earlier answer, beside other data", wave(1, 8_000), { id: "audio_1" }],
  ])(
    "is that of the whole context window for a recording in %s, which may have hours of silence",
    (_, value, also = {}) => {
      const source = { case: "data" as const, value };
      const parts = [{ kind: { case: "audio" as const, value: { source, mediaType: "audio/wav", ...also } } }];
      const request = requestTo({ messages: [create(MessageSchema, { role: Role.USER, parts })] });
      expect(worstCase(request, { prompt: measurePrompt(request), sent: SENT }, [model]).costMicroUsd).toBe(
        contextWindow,
      );
    },
  );

  it("counts a predicted answer as the answer's too: what the model rejects of it is billed", () => {
    const dear = { ...model, price: toPrice({ input: 0, cachedInput: 0, output: 1_000_000, imageOutput: 0 }) };
    const hold = (prediction: string): number | undefined => {
      const request = requestTo({ messages: [message(Role.USER, "x")], prediction });
      return worstCase(request, { prompt: measurePrompt(request), sent: SENT }, [dear]).costMicroUsd;
    };
    expect(hold("y".repeat(500))).toBe(hold("")! + 500);
  });

  it.each([
    ["prices that the prompt may reach", 5_000_000, 3, 4, 20],
    ["no prices that it cannot reach", 5_000_000, 4, 4, 4],
    ["the first price when that of a longer prompt is lower", 500_000, 3, 4, 4],
  ])("has %s", (_, input, abovePromptTokens, textBytes, expected) => {
    const tier = { ...toPrice({ input, cachedInput: 0, output: 0, imageOutput: 0 }), abovePromptTokens };
    const tiered = { ...model, price: { ...price, tiers: [tier] } };
    const request = requestTo({ messages: [message(Role.USER, "x")] });
    const cost = worstCase(request, { prompt: measurePrompt(request), sent: { ...SENT, textBytes } }, [tiered]);
    expect(cost.costMicroUsd).toBe(expected);
  });

  it("is never nothing, which would be granted on a spent budget", () => {
    const cheap = { ...model, price: toPrice({ input: 20_000, cachedInput: 0, output: 0, imageOutput: 0 }) };
    const request = requestTo({ messages: [message(Role.USER, "x")] });
    const sent = { ...SENT, textBytes: 1 };
    expect(worstCase(request, { prompt: measurePrompt(request), sent }, [cheap]).costMicroUsd).toBe(1);
  });

  it("is that of the whole context window for a video, which may be of any length", () => {
    const video = { source: { case: "data" as const, value: new Uint8Array(100) }, mediaType: "video/mp4" };
    const parts = [{ kind: { case: "video" as const, value: video } }];
    const request = requestTo({ messages: [create(MessageSchema, { role: Role.USER, parts })] });
    expect(worstCase(request, { prompt: measurePrompt(request), sent: SENT }, [model]).costMicroUsd).toBe(
      contextWindow,
    );
  });

  it("is that of the whole context window for what the provider keeps and the request only names", () => {
    expect(withPart({ case: "file", value: { source: { case: "id", value: "file-1" } } })).toBe(contextWindow);
    const parts = [{ kind: { case: "audio" as const, value: { id: "audio_1" } } }];
    const spoken = [message(Role.USER, "Hi."), create(MessageSchema, { role: Role.ASSISTANT, parts })];
    expect(held({ messages: [...spoken, message(Role.USER, "Again.")] })).toBe(contextWindow);
  });

  it("has room for the words with which providers explain tools and schemas to their models", () => {
    const plain = held({})!;
    const tool = { kind: { case: "function" as const, value: { name: "f", parametersJson: "{}" } } };
    expect(held({ tools: [tool] })! - plain).toBeGreaterThan(700);
    const format = { format: { case: "jsonSchema" as const, value: { name: "s", schemaJson: "{}" } } };
    expect(held({ responseFormat: format })! - plain).toBeGreaterThan(700);
  });

  it("counts reasoning that came back encrypted, for its text may be a summary", () => {
    const turn = create(MessageSchema, {
      role: Role.ASSISTANT,
      parts: [
        { kind: { case: "reasoning", value: { text: "Hm." } }, signature: "x".repeat(1_000) },
        { kind: { case: "text", value: "Hi." } },
      ],
    });
    const reasoned = requestTo({ messages: [message(Role.USER, "Hi."), turn, message(Role.USER, "Go on.")] });
    const { sent } = toAnthropicRequest(reasoned, model.upstream, { mode: "whole" });
    expect(sent.textBytes).toBeGreaterThan(1_000);
  });
});

describe("the money that is held for an answer", () => {
  /** Nothing for the prompt, and more for pictures than for text. */
  const drawn = toPrice({ input: 0, cachedInput: 0, output: 10_000_000, imageOutput: 40_000_000 });
  const TEXT_AND_IMAGE = [Modality.TEXT, Modality.IMAGE];
  const hold = (translate: typeof toGeminiRequest, asked: Partial<CompletionRequest>): number => {
    const request = { ...requestTo({ messages: [message(Role.USER, "Draw.")] }), ...asked };
    const { sent } = translate(request, model.upstream, { mode: "whole" });
    return worstCase(request, { prompt: measurePrompt(request), sent }, [{ ...model, price: drawn }]).costMicroUsd!;
  };

  it.each([
    ["openai-responses", toResponsesRequest, 24_019],
    ["openai", toOpenAiRequest, 24_019],
    ["gemini", toGeminiRequest, 2_520],
  ])("is also that of the largest picture, whatever the limit of its tokens: %s", (_, translate, picture) => {
    expect(hold(translate, { modalities: TEXT_AND_IMAGE, maxOutputTokens: 10 })).toBe((10 + picture) * 40);
  });

  it("is that of a picture in each choice", () => {
    const asked = { modalities: TEXT_AND_IMAGE, maxOutputTokens: 10, choiceCount: 3 };
    expect(hold(toGeminiRequest, asked)).toBe(3 * (10 + 2_520) * 40);
  });

  it("is that of its text where no picture can come", () => {
    expect(hold(toGeminiRequest, { maxOutputTokens: 10 })).toBe(10 * 40);
    expect(hold(toResponsesRequest, { maxOutputTokens: 10 })).toBe(10 * 40);
  });
});
