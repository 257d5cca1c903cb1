import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import { toGeminiRequest } from "../../../src/providers/gemini/request.ts";
import { PNG, answer, ask, type Body, body, call, contents, request, result, say, system, translate } from "./ask.ts";
import { flash, older, painter } from "./model.ts";

const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]).toString("base64");
const GIF = Buffer.from("GIF89a").toString("base64");

describe("messages", () => {
  it("gathers instructions from anywhere, trap 37: there is no place for them in mid-conversation", () => {
    const { systemInstruction, contents: turns } = body({
      messages: [system("a"), ask("hi"), system("b"), system("")],
    });
    expect(systemInstruction).toEqual({ parts: [{ text: "a" }, { text: "b" }] });
    expect(turns).toEqual([{ role: "user", parts: [{ text: "hi" }] }]);
  });

  it("trap 38: makes the last instruction the question when there is nothing else", () => {
    const only = body({ messages: [system("a"), system("b")] });
    expect(only).toMatchObject({
      systemInstruction: { parts: [{ text: "a" }] },
      contents: [{ parts: [{ text: "b" }] }],
    });
    expect(body({ messages: [system("a")] }).systemInstruction).toBeUndefined();
  });

  it("merges neighbouring turns of one side, and drops what is empty", () => {
    expect(contents(ask("a"), ask("b"), say(""), ask("c"), say("d"), say("e"))).toEqual([
      { role: "user", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] },
      { role: "model", parts: [{ text: "d" }, { text: "e" }] },
    ]);
  });

  it("trap 40: a turn of calls without text has no text part", () => {
    const [, turn] = contents(ask("a"), answer(call("x")), result("x", "1"));
    expect(turn?.parts.map((part) => Object.keys(part)[0])).toEqual(["functionCall"]);
  });

  it("trap 42: answers a turn of calls with one content, in the order of the calls, and the user's words after it", () => {
    const turns = contents(ask("a"), answer(call("x"), call("y")), result("y", "2"), result("x", "1"), ask("go on"));
    expect(turns.map(({ role }) => role)).toEqual(["user", "model", "user"]);
    expect(turns[2]?.parts).toEqual([
      { functionResponse: { id: "x", name: "f", response: { output: "1" } } },
      { functionResponse: { id: "y", name: "f", response: { output: "2" } } },
      { text: "go on" },
    ]);
  });

  it("looks up each result once, in whatever order the results come", () => {
    const ids = Array.from({ length: 200 }, (_, index) => `call-${index}`);
    const conversation = request({
      messages: [ask("a"), answer(...ids.map((id) => call(id))), ...ids.toReversed().map((id) => result(id, id))],
    });
    let reads = 0;
    for (const { parts } of conversation.messages)
      for (const { kind } of parts) {
        if (kind.case !== "toolResult") continue;
        const { toolCallId } = kind.value;
        Object.defineProperty(kind.value, "toolCallId", { get: () => (reads++, toolCallId) });
      }
    const { body: sent } = toGeminiRequest(conversation, flash(), { mode: "whole" });
    expect(reads).toBe(ids.length);
    const { contents: turns } = JSON.parse(sent.toString()) as Body;
    expect(turns[2]?.parts.map(({ functionResponse }) => (functionResponse as { id: string }).id)).toEqual(ids);
  });

  it("trap 44: IDs that come again in a later turn are answered in their own turn", () => {
    const again = answer(call("x", { name: "g" }));
    const turns = contents(ask("a"), answer(call("x")), result("x", "1"), again, result("x", "2"));
    expect(turns[4]?.parts).toEqual([{ functionResponse: { id: "x", name: "g", response: { output: "2" } } }]);
  });

  it.each<[string, JsonValue]>([
    ["", {}],
    ["not JSON", { arguments: "not JSON" }],
    ["[1]", { arguments: "[1]" }],
    ["12345678901234567890", { arguments: "12345678901234567890" }],
    ['{"a":1}', { a: 1 }],
  ])("trap 45: arguments %j become an object", (text, args) => {
    const [, turn] = contents(ask("a"), answer(call("x", { argumentsJson: text })), result("x", "1"));
    expect(turn?.parts[0]).toMatchObject({ functionCall: { args } });
  });

  it("trap 46: keeps the digits of large numbers in arguments, results and schemas", () => {
    const digits = '{"id":9223372036854775807}';
    const messages = [ask("a"), answer(call("x", { argumentsJson: digits })), result("x", digits)];
    const schema = '{"maximum":9223372036854775807}';
    const text = translate({ messages, tools: [{ function: { name: "f", parametersJson: schema } }] }).body;
    expect(text.toString().match(/:9223372036854775807\b/g)).toHaveLength(3);
  });

  it("passes a result on as it is only when it is an object without a reserved key", () => {
    for (const text of ["[1]", '"x"', "12", '{"$ref":"#/a"}', "{oops", ""]) {
      const turns = contents(ask("a"), answer(call("x")), result("x", text));
      expect(turns[2]?.parts[0]).toMatchObject({ functionResponse: { response: { output: text } } });
    }
  });

  it("trap 47: a speaker's name has no place there", () => {
    const translation = translate({ messages: [{ role: "ROLE_USER", name: "Ann", parts: [{ text: "hi" }] }] });
    expect(translation.body.toString()).toBe('{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}');
    expect(omittedOf(translation)).toEqual(["messages[0].name"]);
  });

  it("trap 48: believes a picture's bytes rather than its declared type", () => {
    const image = (data: string, mediaType: string): JsonValue => ({
      role: "ROLE_USER",
      parts: [{ image: { data, mediaType } }],
    });
    expect(contents(image(JPEG, "image/png"))[0]?.parts[0]).toMatchObject({ inlineData: { mimeType: "image/jpeg" } });
    expect(contents(image(PNG, ""))[0]?.parts[0]).toMatchObject({ inlineData: { mimeType: "image/png" } });
    expect(() => contents(image(GIF, "image/png"))).toThrow("messages[0].parts[0]: must be a PNG");
  });

  it("names a document by its address, as for an uploaded one", () => {
    const url = "https://a.test/v1beta/files/f";
    const user = { role: "ROLE_USER", parts: [{ file: { url, mediaType: "application/pdf" } }, { file: { url } }] };
    expect(contents(user)[0]?.parts).toEqual([
      { fileData: { fileUri: url, mimeType: "application/pdf" } },
      { fileData: { fileUri: url } },
    ]);
  });

  it("names the type of a recording as the caller does", () => {
    const audio = (mediaType: string): JsonValue => ({
      role: "ROLE_USER",
      parts: [{ audio: { data: "AA==", mediaType } }],
    });
    for (const mimeType of ["audio/wav", "audio/mpeg", "audio/ogg"])
      expect(contents(audio(mimeType))[0]?.parts).toEqual([{ inlineData: { mimeType, data: "AA==" } }]);
    expect(contents(audio("audio/FLAC"))[0]?.parts).toMatchObject([{ inlineData: { mimeType: "audio/flac" } }]);
  });

  it("sends a video by its bytes or its address, with the excerpt to look at", () => {
    const url = "https://a.test/v1beta/files/v";
    const excerpt = { startOffset: "12.500s", endOffset: "3600s", framesPerSecond: 0.5 };
    const videos = [
      { data: "AAAA", mediaType: "video/mp4" },
      { url, mediaType: "video/webm", ...excerpt },
      { url, startOffset: "0.000000001s" },
    ];
    const {
      body: text,
      omitted,
      clamped,
    } = translate({
      messages: [{ role: "ROLE_USER", parts: videos.map((video) => ({ video })) }],
    });
    expect(JSON.parse(text.toString())).toMatchObject({
      contents: [
        {
          parts: [
            { inlineData: { mimeType: "video/mp4", data: "AAAA" } },
            {
              fileData: { fileUri: url, mimeType: "video/webm" },
              videoMetadata: { startOffset: "12.5s", endOffset: "3600s", fps: 0.5 },
            },
            { fileData: { fileUri: url }, videoMetadata: { startOffset: "0.000000001s" } },
          ],
        },
      ],
    });
    expect(text.toString().match(/videoMetadata/g)).toHaveLength(2);
    expect([omitted, clamped]).toEqual([[], []]);
  });

  it("does not count the bytes of a video as text", () => {
    const video = { data: Buffer.alloc(30_000).toString("base64"), mediaType: "video/mp4" };
    const { sent } = translate({ messages: [{ role: "ROLE_USER", parts: [{ video }] }] });
    expect(sent.textBytes).toBeLessThan(200);
  });

  it("trap 50: a picture in a result goes inside it, or beside it for older models", () => {
    const seen = result("x", [{ text: "ok" }, { image: { data: PNG } }]);
    const messages = [ask("a"), answer(call("x")), seen];
    const picture = { inlineData: { mimeType: "image/png", data: PNG } };
    const response = { id: "x", name: "f", response: { output: "ok" } };
    expect(body({ messages }).contents[2]?.parts).toEqual([{ functionResponse: { ...response, parts: [picture] } }]);
    expect(body({ messages }, older()).contents[2]?.parts).toEqual([{ functionResponse: response }, picture]);
  });

  it("keeps texts and calls of an answer in their order", () => {
    const said = answer(call("x"), { text: "a" }, { reasoning: { text: "hm" } }, { text: "b" }, call("y"));
    const results = { role: "ROLE_TOOL", parts: ["y", "x"].map((id) => ({ toolResult: { toolCallId: id } })) };
    const [, turn, answered] = contents(ask("q"), said, results);
    expect(turn?.parts).toMatchObject([
      { functionCall: { id: "x" } },
      { text: "a" },
      { text: "b" },
      { functionCall: { id: "y" } },
    ]);
    expect(answered?.parts).toMatchObject([{ functionResponse: { id: "x" } }, { functionResponse: { id: "y" } }]);
  });

  it("marks the result of a failed tool", () => {
    const turns = contents(ask("a"), answer(call("x")), result("x", '{"reason":"no such city"}', true));
    expect(turns[2]?.parts).toEqual([
      { functionResponse: { id: "x", name: "f", response: { error: '{"reason":"no such city"}' } } },
    ]);
  });

  it("trap 52: a trailing answer goes along as the model's turn, whatever the model makes of it", () => {
    const turns = body({ messages: [ask("a"), say("Once ")] }, flash({ prefill: false })).contents;
    expect(turns[1]).toEqual({ role: "model", parts: [{ text: "Once " }] });
  });

  it("carries a refusal as text and leaves reasoning out", () => {
    const thoughts = [{ reasoning: { text: "hm" }, signature: "c2ln" }, { reasoning: { redacted: "xx" } }];
    expect(contents(ask("a"), answer(...thoughts, { refusal: "No." }), ask("b"))[1]).toEqual({
      role: "model",
      parts: [{ text: "No." }],
    });
  });

  it.each<[string, JsonValue[], string]>([
    [
      "an address of a picture (trap 49)",
      [{ role: "ROLE_USER", parts: [{ image: { url: "https://a.test/b.png" } }] }],
      "messages[0].parts[0]",
    ],
    [
      "an uploaded file",
      [{ role: "ROLE_USER", parts: [{ text: "a" }, { file: { id: "file-1" } }] }],
      "messages[0].parts[1]",
    ],
    ["a file of no type", [{ role: "ROLE_USER", parts: [{ file: { data: "AAAA" } }] }], "messages[0].parts[0]"],
    [
      "an unknown recording",
      [{ role: "ROLE_USER", parts: [{ audio: { data: "AAAA", mediaType: "audio/xyz" } }] }],
      "messages[0].parts[0]",
    ],
    ["a recording of no type", [{ role: "ROLE_USER", parts: [{ audio: { data: "AAAA" } }] }], "messages[0].parts[0]"],
    ["a video of no type", [{ role: "ROLE_USER", parts: [{ video: { data: "AAAA" } }] }], "messages[0].parts[0]"],
    ["a video from nowhere", [{ role: "ROLE_USER", parts: [{ video: {} }] }], "messages[0].parts[0]"],
    [
      "a video as a result",
      [ask("a"), answer(call("x")), result("x", [{ video: { url: "https://a.test/v.mp4" } }])],
      "messages[2].parts[0].tool_result.parts[0]",
    ],
    [
      "speech by its ID",
      [ask("a"), { role: "ROLE_ASSISTANT", parts: [{ audio: { id: "audio_1" } }] }],
      "messages[1].parts[0]",
    ],
    [
      "a picture among instructions",
      [{ role: "ROLE_SYSTEM", parts: [{ image: { data: PNG } }] }],
      "messages[0].parts[0]",
    ],
    [
      "a recording as a result",
      [ask("a"), answer(call("x")), result("x", [{ audio: { data: "AA==" } }])],
      "messages[2].parts[0].tool_result.parts[0]",
    ],
    ["a custom call", [ask("a"), answer(call("x", { customInput: "a" })), result("x", "1")], "messages[1].parts[0]"],
    [
      "a call without a result (trap 43)",
      [ask("a"), answer(call("x"), call("y")), result("x", "1")],
      "messages[1].parts[1]",
    ],
    [
      "a result without a call (trap 43)",
      [ask("a"), answer(call("x")), result("x", "1"), result("z", "1")],
      "messages[3].parts[0].tool_result.tool_call_id",
    ],
    ["a result out of nowhere", [ask("a"), result("z", "1")], "messages[1].parts[0].tool_result.tool_call_id"],
    ["nothing at all", [ask("")], "messages"],
  ])("refuses %s and names it", (_, messages, field) => {
    expect(() => translate({ messages })).toThrow(
      expect.objectContaining({ code: "invalid_request", param: field }) as Error,
    );
  });

  it("passes on the address of a recording", () => {
    const url = "https://example.com/speech.mp3";
    const message = { role: "ROLE_USER", parts: [{ audio: { url } }] };
    const listener = flash({}, { inputModalities: new Set([Modality.AUDIO]) });
    expect(translate({ messages: [message] }, listener).body.toString()).toContain(`"fileData":{"fileUri":"${url}"}`);
  });

  it("refuses pictures, recordings and videos for a model that only reads", () => {
    const reader = flash({}, { inputModalities: new Set() });
    const image = { role: "ROLE_USER", parts: [{ image: { data: PNG } }] };
    const audio = { role: "ROLE_USER", parts: [{ audio: { data: "AA==", mediaType: "audio/wav" } }] };
    expect(() => translate({ messages: [image] }, reader)).toThrow("takes no pictures");
    const video = { role: "ROLE_USER", parts: [{ video: { url: "https://a.test/v.mp4" } }] };
    expect(() => translate({ messages: [audio] }, reader)).toThrow("takes no recordings");
    expect(() => translate({ messages: [video] }, reader)).toThrow("takes no videos");
  });

  it.each([
    ["a file", { file: { data: "AA==", mediaType: "audio/mpeg" } }],
    [
      "a native part",
      { native: { dialect: "gemini", json: '{"inlineData":{"mime_type":"\\u0061udio/mp3","data":""}}' } },
    ],
  ])("refuses recordings as %s for a model that only reads", (_, part) => {
    const messages = [{ role: "ROLE_USER", parts: [part] }];
    const reader = flash({}, { inputModalities: new Set() });
    expect(() => translate({ messages }, reader)).toThrow("does not read audio");
    expect(translate({ messages }).body.toString()).toContain('"audio/');
  });
});

describe("signatures", () => {
  const sentinel = "skip_thought_signature_validator";
  const turn = (message: JsonValue, model?: UpstreamModel): unknown =>
    body({ messages: [ask("a"), message, ask("b")] }, model).contents[1]?.parts;

  it("come back on their own part, also on an empty text", () => {
    const signed = { text: "b", signature: "c2ln" };
    const sent = { text: "b", thoughtSignature: "c2ln" };
    expect(turn(answer({ text: "a" }, signed))).toEqual([{ text: "a" }, sent]);
    expect(turn(answer(signed, { text: "a" }))).toEqual([sent, { text: "a" }]);
    expect(turn(say("", "c2ln"))).toEqual([{ text: "", thoughtSignature: "c2ln" }]);
  });

  it("trap 51: come back on our own pictures and on the text before them", () => {
    const picture = { image: { data: PNG }, signature: "aW1n" };
    const message = answer({ text: "a", signature: "c2ln" }, picture, { text: "b" });
    const inlineData = { mimeType: "image/png", data: PNG };
    expect(turn(message)).toEqual([
      { text: "a", thoughtSignature: "c2ln" },
      { inlineData, thoughtSignature: "aW1n" },
      { text: "b" },
    ]);
  });

  it("of pictures are filled in where they are checked and lost", () => {
    const message = { role: "ROLE_ASSISTANT", parts: [{ text: "a" }, { image: { data: PNG } }, { text: "b" }] };
    const inlineData = { mimeType: "image/png", data: PNG };
    expect(turn(message, painter())).toEqual([
      { text: "a", thoughtSignature: sentinel },
      { inlineData, thoughtSignature: sentinel },
      { text: "b" },
    ]);
    expect(turn(message, painter({ preservedReasoning: false }))).toEqual([
      { text: "a" },
      { inlineData },
      { text: "b" },
    ]);
  });

  it.each([
    ["trap 98: lost by the client", ""],
    ["trap 101: not one of this provider", "sig from {elsewhere}"],
  ])("%s: the first call of the step gets the sentinel, on models that check", (_, signature) => {
    const messages = [ask("a"), answer(call("x", { signature }), call("y")), result("x", "1"), result("y", "2")];
    const signed = (model: UpstreamModel): unknown[] =>
      body({ messages }, model).contents[1]!.parts.map((part) => part["thoughtSignature"]);
    expect(signed(flash())).toEqual([sentinel, undefined]);
    expect(signed(older())).toEqual([undefined, undefined]);
  });
});
