import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  type CompletionRequestSchema,
  ResponseFormatSchema,
  type Verbosity,
} from "../../gen/parley/v1/completion_pb.js";
import { type AudioSchema, type Message, PartSchema, Role, type VideoSchema } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { validate } from "../../src/core/validate.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { callMessage, message, requestTo, resultMessage } from "./requests.ts";
import { findFailure } from "../support/errors.ts";

type Wrong = MessageInitShape<typeof CompletionRequestSchema>;
type PartKind = NonNullable<MessageInitShape<typeof PartSchema>["kind"]>;

const text = modelOf("a", new ScriptedProvider(new FakeClock(), {}));
const painter = modelOf("painter", text.provider, {
  upstream: { outputModalities: new Set([Modality.TEXT, Modality.IMAGE]) },
});

const failureOf = (wrong: Wrong, primary = text): Failure | undefined =>
  findFailure(() => validate(requestTo(wrong), primary, () => ["painter"]));

const said = (...messages: readonly Message[]): Wrong => ({ messages: [...messages] });
const user = message(Role.USER, "hi");
const calls = callMessage;
const result = resultMessage;
const tool = (name: string, parametersJson = ""): Wrong => ({
  tools: [create(ToolSchema, { kind: { case: "function", value: { name, parametersJson } } })],
});
const schema = (name: string, schemaJson = ""): Wrong => ({
  responseFormat: create(ResponseFormatSchema, { format: { case: "jsonSchema", value: { name, schemaJson } } }),
});
const image = (url: string): Wrong =>
  said(
    message(Role.USER, "", {
      parts: [{ kind: { case: "image", value: { source: { case: "url", value: url } } } }],
    }),
  );
const sent = (kind: PartKind): Wrong => said(message(Role.USER, "", { parts: [{ kind }] }));
const recording = (value: MessageInitShape<typeof AudioSchema>): Wrong => sent({ case: "audio", value });
const video = (value: MessageInitShape<typeof VideoSchema>): Wrong => sent({ case: "video", value });
const film = { source: { case: "data" as const, value: new Uint8Array(9) }, mediaType: "video/mp4" };
const pairs = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
const RANGE = (min: number, max: number): string => `must be between ${min} and ${max}`;

/** A part or a tool of a kind that this version does not know. */
function later<D extends DescMessage>(desc: D): MessageShape<D> {
  return Object.assign(create(desc), { $unknown: [{ no: 100, wireType: WireType.Varint, data: new Uint8Array([1]) }] });
}

describe("a request is refused", () => {
  it.each<[string, Wrong, string, string]>([
    ["without messages", { messages: [] }, "messages", "must hold at least one message"],
    [
      "with too many messages",
      { messages: Array<Message>(2_001).fill(user) },
      "messages",
      "must hold at most 2000 messages",
    ],
    [
      "with a message without a role",
      said(user, message(Role.UNSPECIFIED, "hi")),
      "messages[1].role",
      "must be one of system, developer, user, assistant, tool",
    ],
    [
      "with a message with an unknown role",
      said(message(99 as Role, "hi")),
      "messages[0].role",
      "must be one of system, developer, user, assistant, tool",
    ],
    ["with an empty user message", said(message(Role.USER, "")), "messages[0].parts", "must not be empty"],
    ["with an empty system message", said(message(Role.SYSTEM, ""), user), "messages[0].parts", "must not be empty"],
    ["with an empty part", said(message(Role.USER, "", { parts: [{}] })), "messages[0].parts[0]", "must have content"],
    [
      "with reasoning in a user message",
      said(message(Role.USER, "", { parts: [{ kind: { case: "reasoning", value: { text: "Hm." } } }] })),
      "messages[0].parts[0]",
      "must be text, an image, audio, video or a file",
    ],
    [
      "with a tool result in an assistant message",
      said(user, message(Role.ASSISTANT, "", { parts: result("c1").parts })),
      "messages[1].parts[0]",
      "must not be a tool result in an assistant message",
    ],
    [
      "with a text in a tool message",
      said(user, calls("c1"), message(Role.TOOL, "42")),
      "messages[2].parts[0]",
      "must be a tool result in a tool message",
    ],
    [
      "with a tool result inside a tool result",
      said(
        user,
        calls("c1"),
        message(Role.TOOL, "", {
          parts: [{ kind: { case: "toolResult", value: { toolCallId: "c1", parts: result("c2").parts } } }],
        }),
      ),
      "messages[2].parts[0].tool_result.parts[0]",
      "must be text, an image, audio, video or a file",
    ],
    [
      "with too many parts in all tool results of a message",
      said(
        user,
        calls("c1"),
        message(Role.TOOL, "", {
          parts: [
            { kind: { case: "toolResult", value: { toolCallId: "c1", parts: Array(4_000).fill(user.parts[0]) } } },
          ],
        }),
      ),
      "messages[2].parts",
      "must hold at most 4000 parts",
    ],
    [
      "with a picture in a system message",
      said(
        message(Role.SYSTEM, "", {
          parts: [{ kind: { case: "image", value: { source: { case: "url", value: "https://a/b.png" } } } }],
        }),
      ),
      "messages[0].parts[0]",
      "must be text in a system message",
    ],
    [
      "with a picture from an http address",
      image("http://a/b.png"),
      "messages[0].parts[0]",
      "must be an https address or a data URL",
    ],
    [
      "with a file from an http address",
      said(
        message(Role.USER, "", {
          parts: [{ kind: { case: "file", value: { source: { case: "url", value: "http://a/b.pdf" } } } }],
        }),
      ),
      "messages[0].parts[0]",
      "must be an https address",
    ],
    [
      "with a picture from a file",
      image("file:///etc/passwd"),
      "messages[0].parts[0]",
      "must be an https address or a data URL",
    ],
    [
      "with a picture from nowhere",
      said(message(Role.USER, "", { parts: [{ kind: { case: "image", value: {} } }] })),
      "messages[0].parts[0]",
      "must have its data or an address",
    ],
    [
      "with a recording of no type",
      recording({ source: { case: "data", value: new Uint8Array(9) } }),
      "messages[0].parts[0].audio.media_type",
      "is required, such as audio/wav",
    ],
    ["with a video from nowhere", video({}), "messages[0].parts[0].video", "must have its data or an address"],
    [
      "with a video of no type",
      video({ source: film.source }),
      "messages[0].parts[0].video.media_type",
      "is required, such as video/mp4",
    ],
    [
      "with a video from an http address",
      video({ source: { case: "url", value: "http://a/b.mp4" } }),
      "messages[0].parts[0].video.url",
      "must be an https address",
    ],
    ...[0, -1, 24.1, Number.NaN, Infinity].map((framesPerSecond): [string, Wrong, string, string] => [
      `with a video of which ${framesPerSecond} pictures a second are looked at`,
      video({ ...film, framesPerSecond }),
      "messages[0].parts[0].video.frames_per_second",
      "must be more than 0 and at most 24",
    ]),
    [
      "with a video in a system message",
      said(message(Role.SYSTEM, "", { parts: [{ kind: { case: "video", value: film } }] }), user),
      "messages[0].parts[0]",
      "must be text in a system message",
    ],
    [
      "with a video of no type in a tool result",
      said(
        user,
        calls("c1"),
        message(Role.TOOL, "", {
          parts: [
            {
              kind: {
                case: "toolResult",
                value: {
                  toolCallId: "c1",
                  parts: [{ kind: { case: "video", value: { source: film.source } } }],
                },
              },
            },
          ],
        }),
      ),
      "messages[2].parts[0].tool_result.parts[0].video.media_type",
      "is required, such as video/mp4",
    ],
    [
      "with a tool message that answers no call",
      said(user, result("")),
      "messages[1].parts[0].tool_result.tool_call_id",
      "is required in a tool message",
    ],
    [
      "with a tool message for another call",
      said(user, calls("c1"), result("c1"), result("c2")),
      "messages[3].parts[0].tool_result.tool_call_id",
      "must be the ID of a call in the assistant message before it",
    ],
    [
      "with a call answered twice",
      said(user, calls("c1"), result("c1"), result("c1")),
      "messages[3].parts[0].tool_result.tool_call_id",
      "must be the ID of a call in the assistant message before it",
    ],
    [
      "with a call that is not answered at the end",
      said(user, calls("c1", "c2"), result("c2")),
      "messages[1].parts[0]",
      "must be followed by tool messages for each tool_call_id; missing: c1",
    ],
    [
      "with a call that is not answered before the next message",
      said(user, calls("c1"), user, result("c1")),
      "messages[1].parts[0]",
      "must be followed by tool messages for each tool_call_id; missing: c1",
    ],
    [
      "with calls in a user message",
      said(message(Role.USER, "", { parts: calls("c1").parts }), result("c1")),
      "messages[0].parts[0]",
      "must be text, an image, audio, video or a file",
    ],
    ["with temperature below", { temperature: -0.1 }, "temperature", RANGE(0, 2)],
    ["with temperature above", { temperature: 2.1 }, "temperature", RANGE(0, 2)],
    ["with temperature that is no number", { temperature: Number.NaN }, "temperature", RANGE(0, 2)],
    ["with top_p below", { topP: -0.1 }, "top_p", RANGE(0, 1)],
    ["with top_p above", { topP: 1.1 }, "top_p", RANGE(0, 1)],
    ["with frequency_penalty below", { frequencyPenalty: -2.1 }, "frequency_penalty", RANGE(-2, 2)],
    ["with frequency_penalty above", { frequencyPenalty: 2.1 }, "frequency_penalty", RANGE(-2, 2)],
    ["with presence_penalty below", { presencePenalty: -2.1 }, "presence_penalty", RANGE(-2, 2)],
    ["with presence_penalty above", { presencePenalty: Infinity }, "presence_penalty", RANGE(-2, 2)],
    ["with too many alternatives of a token", { logprobs: { topCount: 21 } }, "logprobs.top_count", RANGE(0, 20)],
    ["with less than no alternatives of a token", { logprobs: { topCount: -1 } }, "logprobs.top_count", RANGE(0, 20)],
    ["with top_k of zero", { topK: 0 }, "top_k", RANGE(1, 2_147_483_647)],
    ["with no tokens for reasoning", { reasoning: { maxTokens: 0 } }, "reasoning.max_tokens", RANGE(1, 2_147_483_647)],
    [
      "with an effort of next year",
      { reasoning: { effort: 99 as ReasoningEffort } },
      "reasoning.effort",
      "is not an effort",
    ],
    ["with a verbosity of next year", { verbosity: 9 as Verbosity }, "verbosity", "is not a verbosity"],
    ["with choice_count of zero", { choiceCount: 0 }, "choice_count", RANGE(1, 128)],
    ["with choice_count too large", { choiceCount: 129 }, "choice_count", RANGE(1, 128)],
    ["with a logit bias out of range", { logitBias: { 50256: 101 } }, "logit_bias.50256", RANGE(-100, 100)],
    ["with max_output_tokens of zero", { maxOutputTokens: 0 }, "max_output_tokens", RANGE(1, 8_000)],
    ["with max_output_tokens above the model's", { maxOutputTokens: 8_001 }, "max_output_tokens", RANGE(1, 8_000)],
    [
      "with five stop sequences",
      { stopSequences: ["1", "2", "3", "4", "5"] },
      "stop_sequences",
      "must hold at most 4 sequences",
    ],
    ["with an empty stop sequence", { stopSequences: ["1", ""] }, "stop_sequences[1]", "must not be empty"],
    ["with a long session ID", { sessionId: "s".repeat(257) }, "session_id", "must be at most 256 characters"],
    [
      "with nine fallback models",
      { fallbackModels: Array<string>(9).fill("b") },
      "fallback_models",
      "must hold at most 8 models",
    ],
    [
      "with too many fields of dialects",
      { providerOptionsJson: pairs(65) },
      "provider_options_json",
      "must hold at most 64 fields",
    ],
    ["with too many metadata", { metadata: pairs(17) }, "metadata", "must hold at most 16 pairs"],
    [
      "with a long metadata key",
      { metadata: { ["k".repeat(65)]: "v" } },
      "metadata",
      "must have keys of 1 to 64 characters",
    ],
    ["with an empty metadata key", { metadata: { "": "v" } }, "metadata", "must have keys of 1 to 64 characters"],
    [
      "with a long metadata value",
      { metadata: { k: "v".repeat(513) } },
      "metadata.k",
      "must be at most 512 characters",
    ],
    ["with a tool of no kind", { tools: [{}] }, "tools[0]", "must be a function, a custom tool or a native tool"],
    ["with a tool without a name", tool(""), "tools[0].function.name", "must be 1 to 64 letters, digits, _ or -"],
    [
      "with a tool with a space in its name",
      tool("my tool"),
      "tools[0].function.name",
      "must be 1 to 64 letters, digits, _ or -",
    ],
    [
      "with a tool named like a path (trap 66)",
      tool("files.example/read:v2"),
      "tools[0].function.name",
      "must be 1 to 64 letters, digits, _ or -",
    ],
    [
      "with a tool with a newline after its name",
      tool("f\n"),
      "tools[0].function.name",
      "must be 1 to 64 letters, digits, _ or -",
    ],
    [
      "with a custom tool with a long name",
      { tools: [{ kind: { case: "custom", value: { name: "n".repeat(65) } } }] },
      "tools[0].custom.name",
      "must be 1 to 64 letters, digits, _ or -",
    ],
    [
      "with parameters that are no schema",
      tool("f", "[]"),
      "tools[0].function.parameters_json",
      "must be a JSON schema, which is an object",
    ],
    [
      "with parameters that are no JSON",
      tool("f", "{"),
      "tools[0].function.parameters_json",
      "must be a JSON schema, which is an object",
    ],
    [
      "with a nameless schema",
      schema(""),
      "response_format.json_schema.name",
      "must be 1 to 64 letters, digits, _ or -",
    ],
    [
      "with a schema that is no object",
      schema("s", "null"),
      "response_format.json_schema.schema_json",
      "must be a JSON schema, which is an object",
    ],
    ["for a picture alone", { modalities: [Modality.IMAGE] }, "modalities", "must include text"],
    ...([Modality.UNSPECIFIED, Modality.FILE, Modality.VIDEO, Modality.EMBEDDING] as const).map(
      (modality): [string, Wrong, string, string] => [
        `for a modality that no answer has: ${Modality[modality]}`,
        { modalities: [Modality.TEXT, modality] },
        "modalities",
        "must be of text, image and audio",
      ],
    ),
    [
      "for an unknown modality",
      { modalities: [Modality.TEXT, 9 as Modality] },
      "modalities",
      "must be of text, image and audio",
    ],
    [
      "for a picture by a model that makes none",
      { modalities: [Modality.TEXT, Modality.IMAGE] },
      "modalities",
      "must not include image: a does not make pictures (these do: painter)",
    ],
    [
      "for speech by a model that cannot speak",
      { modalities: [Modality.TEXT, Modality.AUDIO] },
      "modalities",
      "must not include audio: a does not make speech",
    ],
  ])("%s", (_, wrong, field, description) => {
    const failure = failureOf(wrong);
    expect(failure).toMatchObject({
      code: "invalid_request",
      message: `${field}: ${description}.`,
      param: field,
    });
    expect(failure?.violations[0]).toEqual({ field, description });
  });

  it("with everything that is wrong about it, the first as its message", () => {
    const failure = failureOf({ temperature: 3, topP: 2, stopSequences: [""] });
    expect(failure?.violations.map((violation) => violation.field)).toEqual([
      "temperature",
      "top_p",
      "stop_sequences[0]",
    ]);
    expect(failure?.message).toBe("temperature: must be between 0 and 2.");
  });

  it("with twenty wrong fields at most, however many there are", () => {
    expect(failureOf({ messages: Array<Message>(2_000).fill(message(Role.UNSPECIFIED, "")) })?.violations).toHaveLength(
      20,
    );
  });
});

describe("a request is accepted", () => {
  it.each<[string, Wrong]>([
    ["with as many messages as there may be", { messages: Array<Message>(2_000).fill(user) }],
    [
      "with every number at its lowest",
      { temperature: 0, topP: 0, frequencyPenalty: -2, presencePenalty: -2, choiceCount: 1, maxOutputTokens: 1 },
    ],
    [
      "with every number at its highest",
      { temperature: 2, topP: 1, frequencyPenalty: 2, presencePenalty: 2, choiceCount: 128, maxOutputTokens: 8_000 },
    ],
    ["with log probabilities", { logprobs: { topCount: 20 }, logitBias: { 1: -100, 2: 100 } }],
    ["with four stop sequences", { stopSequences: ["1", "2", "3", "\n"] }],
    ["with eight fallback models", { fallbackModels: Array<string>(8).fill("b") }],
    ["with as much metadata as there may be", { metadata: { ...pairs(15), ["k".repeat(64)]: "v".repeat(512) } }],
    ["with the longest session ID", { sessionId: "s".repeat(256) }],
    ["with a part of a later version", said(message(Role.USER, "", { parts: [later(PartSchema)] }))],
    ["with a tool of a later version", { tools: [later(ToolSchema)] }],
    ["with an option of a later version", { providerOptionsJson: { "openai.later": "1" } }],
    ["with an amount of reasoning", { reasoning: { maxTokens: 1 } }],
    ["with an effort", { reasoning: { effort: ReasoningEffort.XHIGH, maxTokens: 1 } }],
    ["with reasoning options that say nothing", { reasoning: {} }],
    ["with calls answered in another order", said(user, calls("c1", "c2"), result("c2"), result("c1"), user)],
    ["with calls in several turns", said(user, calls("c1"), result("c1"), calls("c1"), result("c1"))],
    ["with an empty assistant message", said(user, message(Role.ASSISTANT, ""), user)],
    ["with an empty tool result", said(user, calls("c1"), result("c1", ""))],
    ["with a picture from an https address", image("HTTPS://example.com/a.png")],
    ["with a recording by its address", recording({ source: { case: "url", value: "https://example.com/a.mp3" } })],
    ["with a recording", recording({ source: { case: "data", value: new Uint8Array(9) }, mediaType: "audio/wav" })],
    [
      "with a recording of an earlier answer",
      said(user, message(Role.ASSISTANT, "", { parts: [{ kind: { case: "audio", value: { id: "audio_1" } } }] }), user),
    ],
    [
      "with a transcript of an earlier answer",
      said(
        user,
        message(Role.ASSISTANT, "", { parts: [{ kind: { case: "audio", value: { transcript: "Hi." } } }] }),
        user,
      ),
    ],
    ["with a video", video(film)],
    ["with a video of which few pictures are looked at", video({ ...film, framesPerSecond: 0.1 })],
    ["with a video of which many pictures are looked at", video({ ...film, framesPerSecond: 24 })],
    ["with a video from an https address", video({ source: { case: "url", value: "https://example.com/a.mp4" } })],
    ["with a tool without parameters", tool("get-weather_2")],
    ["with a schema", schema("answer", '{"type":"object"}')],
    ["for text", { modalities: [Modality.TEXT] }],
  ])("%s", (_, right) => {
    expect(failureOf(right)).toBeUndefined();
  });

  it("for a picture by a model that makes some", () => {
    expect(failureOf({ modalities: [Modality.IMAGE, Modality.TEXT] }, painter)).toBeUndefined();
  });
});

describe("JSON texts of a request", () => {
  const large = `{"a":[${"0,".repeat(120_000)}0]}`;

  it.each<[string, Wrong]>([
    ["schemas", { tools: [{ kind: { case: "function", value: { name: "f", parametersJson: large } } }] }],
    ["formats of custom tools", { tools: [{ kind: { case: "custom", value: { name: "c", formatJson: large } } }] }],
    ["native tools", { tools: [{ kind: { case: "native", value: { dialect: "openai", json: large } } }] }],
    ["options", { providerOptionsJson: { "openai.moderation": large } }],
    [
      "arguments",
      said(
        user,
        message(Role.ASSISTANT, "", {
          parts: [
            {
              kind: {
                case: "toolCall",
                value: { id: "c1", name: "f", input: { case: "argumentsJson", value: large } },
              },
            },
          ],
        }),
        result("c1"),
      ),
    ],
  ])("are bounded together: %s", (_, wrong) => {
    expect(failureOf(wrong)?.message).toContain("must not, with the schemas and arguments of the whole request");
  });
});
