import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CacheMarkSchema, ImageDetail, type Message, Role } from "../../../gen/parley/v1/message_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { failureOf } from "../../support/errors.ts";

const read = (message: unknown): Message => readChatRequest({ model: "a", messages: [message] }).request.messages[0]!;

const refusalOf = (message: unknown): Failure => failureOf(() => read(message));

const user = (...parts: readonly object[]): object => ({ role: "user", content: parts });
const assistant = (more: object): object => ({ role: "assistant", ...more });
const PNG = "data:image/png;base64,iVBORw0KGgo=";
const png = Buffer.from("iVBORw0KGgo=", "base64");
const text = (value: string): object => ({ kind: { case: "text", value } });
const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };

describe("a message is understood", () => {
  it.each<[string, object, object]>([
    ["from the system", { role: "system", content: "be kind" }, { role: Role.SYSTEM, parts: [text("be kind")] }],
    ["from the developer, which is the same", { role: "developer", content: "x" }, { role: Role.SYSTEM }],
    [
      "from the user",
      { role: "user", content: "hi", name: "Ann" },
      { role: Role.USER, parts: [text("hi")], name: "Ann" },
    ],
    ["from the assistant", assistant({ content: "yes" }), { role: Role.ASSISTANT, parts: [text("yes")] }],
    [
      "from a tool",
      { role: "tool", content: "42", tool_call_id: "c1" },
      { role: Role.TOOL, parts: [{ kind: { value: { toolCallId: "c1", parts: [text("42")], isError: false } } }] },
    ],
    ["with nothing in it", assistant({ content: "" }), { parts: [] }],
    [
      "without content",
      assistant({ tool_calls: [call] }),
      {
        parts: [
          { kind: { case: "toolCall", value: { id: "c1", name: "f", input: { case: "argumentsJson", value: "{}" } } } },
        ],
      },
    ],
    [
      "in text parts",
      user({ type: "text", text: "a" }, { type: "text", text: "b" }),
      { parts: [text("a"), text("b")] },
    ],
    ["that refuses", assistant({ refusal: "No." }), { parts: [{ kind: { case: "refusal", value: "No." } }] }],
    ["that refuses in a part", assistant({ content: [{ type: "refusal", refusal: "No." }] }), { parts: [text("No.")] }],
    [
      "with a picture",
      user({ type: "image_url", image_url: { url: PNG, detail: "low" } }),
      {
        parts: [
          {
            kind: {
              case: "image",
              value: { mediaType: "image/png", detail: ImageDetail.LOW, source: { case: "data", value: png } },
            },
          },
        ],
      },
    ],
    [
      "with a picture's bare address",
      user({ type: "image_url", image_url: "https://a/b.png" }),
      { parts: [{ kind: { case: "image", value: { source: { case: "url", value: "https://a/b.png" } } } }] },
    ],
    [
      "with speech",
      user({ type: "input_audio", input_audio: { data: "aGk=", format: "wav" } }),
      {
        parts: [
          {
            kind: {
              case: "audio",
              value: { source: { case: "data", value: Buffer.from("hi") }, mediaType: "audio/wav" },
            },
          },
        ],
      },
    ],
    [
      "with an MP3",
      user({ type: "input_audio", input_audio: { data: "aGk=", format: "mp3" } }),
      { parts: [{ kind: { case: "audio", value: { mediaType: "audio/mpeg" } } }] },
    ],
    [
      "with speech in another format",
      user({ type: "input_audio", input_audio: { data: "aGk=", format: "flac" } }),
      { parts: [{ kind: { case: "audio", value: { mediaType: "audio/flac" } } }] },
    ],
    [
      "with earlier speech",
      assistant({ audio: { id: "audio_1" } }),
      { parts: [{ kind: { case: "audio", value: { id: "audio_1" } } }] },
    ],
    [
      "with a file by ID",
      user({ type: "file", file: { file_id: "file-1", filename: "a.pdf" } }),
      { parts: [{ kind: { case: "file", value: { name: "a.pdf", source: { case: "id", value: "file-1" } } } }] },
    ],
    [
      "with a file in a data URL",
      user({ type: "file", file: { file_data: "data:text/plain;base64,aGk=" } }),
      {
        parts: [
          {
            kind: {
              case: "file",
              value: { mediaType: "text/plain", source: { case: "data", value: Buffer.from("hi") } },
            },
          },
        ],
      },
    ],
    [
      "with a PDF as bare base64",
      user({ type: "file", file: { file_data: "JVBERi0x" } }),
      { parts: [{ kind: { case: "file", value: { mediaType: "application/pdf" } } }] },
    ],
    [
      "with other bare base64",
      user({ type: "file", file: { file_data: "aGk=" } }),
      { parts: [{ kind: { case: "file", value: { mediaType: "text/plain" } } }] },
    ],
    [
      "with a custom call",
      assistant({ tool_calls: [{ id: "c1", type: "custom", custom: { name: "g", input: "raw" } }] }),
      { parts: [{ kind: { value: { id: "c1", name: "g", input: { case: "customInput", value: "raw" } } } }] },
    ],
    [
      "with a call's state",
      assistant({ tool_calls: [{ ...call, extra_content: { google: { thought_signature: "s" } } }] }),
      { parts: [{ kind: { case: "toolCall" }, signature: "s" }] },
    ],
    [
      "with state of its own",
      assistant({ content: "x", extra_content: { google: { thought_signature: "s" } } }),
      { parts: [{ kind: { case: "text" }, signature: "s" }] },
    ],
    [
      "with a picture's state",
      user({ type: "image_url", image_url: { url: PNG }, extra_content: { google: { thought_signature: "s" } } }),
      { parts: [{ kind: { case: "image" }, signature: "s" }] },
    ],
    [
      "with pictures of an earlier answer after its text",
      assistant({ content: "see", images: [{ type: "image_url", image_url: { url: PNG } }] }),
      { parts: [text("see"), { kind: { case: "image" } }] },
    ],
    [
      "with kept reasoning",
      assistant({ content: "x", reasoning_content: "hm" }),
      { parts: [{ kind: { case: "reasoning", value: { text: "hm" } }, signature: "" }, text("x")] },
    ],
    ["with empty reasoning", assistant({ content: "x", reasoning_content: "" }), { parts: [text("x")] }],
    [
      "with reasoning blocks rather than their text",
      assistant({
        content: "abcdef",
        reasoning_content: "hm",
        tool_calls: [call],
        thinking_blocks: [
          { type: "redacted_thinking", data: "r" },
          { type: "thinking", thinking: "hm", signature: "s", at: { text: 3, tools: 1 } },
        ],
      }),
      {
        parts: [
          { kind: { value: { redacted: "r" } } },
          text("abc"),
          { kind: { case: "toolCall" } },
          { kind: { value: { text: "hm", redacted: "" } }, signature: "s" },
          text("def"),
        ],
      },
    ],
    [
      "with a cache mark",
      { role: "user", content: "x", cache_control: { type: "ephemeral" } },
      { parts: [{ kind: { case: "text" }, cacheMark: create(CacheMarkSchema) }] },
    ],
    [
      "with a cache mark on a part",
      user({ type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "1h" } }),
      { parts: [{ cacheMark: { ttl: { seconds: 3600n, nanos: 0 } } }] },
    ],
    [
      "with a cache mark for five minutes",
      { role: "user", content: "x", cache_control: { type: "ephemeral", ttl: "5m" } },
      { parts: [{ cacheMark: { ttl: { seconds: 300n } } }] },
    ],
    [
      "with a cache mark for seconds",
      { role: "user", content: "x", cache_control: { type: "ephemeral", ttl: "300s" } },
      { parts: [{ cacheMark: { ttl: { seconds: 300n } } }] },
    ],
  ])("%s", (_, message, expected) => {
    expect(read(message)).toMatchObject(expected);
  });

  it.each([
    "content",
    "name",
    "refusal",
    "tool_calls",
    "tool_call_id",
    "audio",
    "reasoning_content",
    "thinking_blocks",
    "extra_content",
    "images",
    "cache_control",
  ])("with a null %s, which is not given", (field) => {
    expect(read({ role: "assistant", [field]: null })).toEqual(read({ role: "assistant" }));
  });
});

describe("what is wrong with a message is named", () => {
  it.each<[object, string]>([
    [{ content: "hi" }, "messages[0].role"],
    [{ role: "wizard", content: "hi" }, "messages[0].role"],
    [{ role: "function", content: "hi", name: "f" }, "messages[0].role"],
    [{ role: "user", content: 7 }, "messages[0].content"],
    [user({ type: "text" }), "messages[0].content[0].text"],
    [user({ type: "text", text: "a" }, { type: "text", text: 7 }), "messages[0].content[1].text"],
    [user({ type: "video_url", video_url: {} }), "messages[0].content[0].type"],
    [user({ text: "a" }), "messages[0].content[0].type"],
    [user({ type: "image_url" }), "messages[0].content[0].image_url"],
    [user({ type: "image_url", image_url: {} }), "messages[0].content[0].image_url.url"],
    [
      user({ type: "image_url", image_url: { url: "data:image/png;base64,***" } }),
      "messages[0].content[0].image_url.url",
    ],
    [user({ type: "image_url", image_url: { url: "data:image/png,raw" } }), "messages[0].content[0].image_url.url"],
    [
      user({ type: "input_audio", input_audio: { data: "***", format: "wav" } }),
      "messages[0].content[0].input_audio.data",
    ],
    [user({ type: "input_audio", input_audio: { data: "aGk=" } }), "messages[0].content[0].input_audio.format"],
    [user({ type: "file", file: {} }), "messages[0].content[0].file.file_data"],
    [user({ type: "file", file: { file_data: "***" } }), "messages[0].content[0].file.file_data"],
    [
      assistant({ images: [{ type: "image_url", image_url: { url: "data:x" } }] }),
      "messages[0].images[0].image_url.url",
    ],
    [assistant({ tool_calls: {} }), "messages[0].tool_calls"],
    [
      assistant({ tool_calls: [{ id: "c1", type: "function", function: { name: "f" } }] }),
      "messages[0].tool_calls[0].function.arguments",
    ],
    [
      assistant({ tool_calls: [{ type: "function", function: { name: "f", arguments: "" } }] }),
      "messages[0].tool_calls[0].id",
    ],
    [assistant({ tool_calls: [{ id: "c1", function: {} }] }), "messages[0].tool_calls[0].type"],
    [{ role: "tool", content: "42", tool_call_id: 7 }, "messages[0].tool_call_id"],
    [assistant({ thinking_blocks: [{ type: "musing" }] }), "messages[0].thinking_blocks[0].type"],
    [assistant({ reasoning_content: 7 }), "messages[0].reasoning_content"],
    [
      { role: "user", content: "x", cache_control: { type: "ephemeral", ttl: "long" } },
      "messages[0].cache_control.ttl",
    ],
    [
      user({ type: "text", text: "a" }, { type: "text", text: "x", cache_control: { type: "ephemeral", ttl: "2d" } }),
      "messages[0].content[1].cache_control.ttl",
    ],
  ])("%j", (message, param) => {
    expect(refusalOf(message)).toMatchObject({ code: "invalid_request", violations: [{ field: param }] });
  });

  it("at its place among the messages", () => {
    const messages = [{ role: "user", content: "hi" }, assistant({ content: "yes" }), { role: "user", content: 7 }];
    expect(() => readChatRequest({ model: "a", messages })).toThrow(/^messages\[2\]\.content: /);
  });
});
