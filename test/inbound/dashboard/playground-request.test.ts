import { create, equals, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  CompletionChunkSchema,
  type CompletionRequest,
  CompletionRequestSchema,
  FinishReason,
} from "../../../gen/parley/v1/completion_pb.js";
import { ImageSchema, type Part, ReasoningSchema, ToolCallSchema } from "../../../gen/parley/v1/message_pb.js";
import { addChunk, type Answer, NOTHING } from "../../../web/playground/answer.ts";
import { toChatJson } from "../../../web/playground/formats/chat.ts";
import { CHAT_PROGRAMS, FORMATS } from "../../../web/playground/formats/formats.ts";
import { toGeminiJson } from "../../../web/playground/formats/gemini.ts";
import { toMessagesJson } from "../../../web/playground/formats/messages.ts";
import { toResponsesJson } from "../../../web/playground/formats/responses.ts";
import { type Draft, EMPTY_DRAFT } from "../../../web/playground/draft.ts";
import { toRequest } from "../../../web/playground/request.ts";
import { TOOLS_EXAMPLE } from "../../../web/playground/tools.ts";
import { openCalls, type Turn, withoutTurn, withText } from "../../../web/playground/turns.ts";
import { ChoiceWriter, toPart } from "../../../src/core/chunks.ts";
import { readMessagesRequest } from "../../../src/formats/anthropic/request.ts";
import { readGeminiRequest } from "../../../src/formats/gemini/request.ts";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { fold } from "../../support/fold.ts";

const DRAFT: Draft = { ...EMPTY_DRAFT, keyId: "key_1", model: "words" };
const HELLO: Turn = { id: 1, role: "user", text: "Hello", pictures: [] };
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);

const IMAGE = create(ImageSchema, { source: { case: "data", value: PNG }, mediaType: "image/png" });
const CALL = create(ToolCallSchema, {
  id: "call_1",
  name: "get_weather",
  input: { case: "argumentsJson", value: '{"city":"Rome"}' },
});
const PARTS: readonly Part[] = [
  toPart({ case: "reasoning", value: create(ReasoningSchema, { text: "Hm." }) }, "b"),
  toPart({ case: "text", value: "Let" }, "d"),
  toPart({ case: "toolCall", value: CALL }, "a"),
  toPart({ case: "reasoning", value: create(ReasoningSchema, { redacted: "sealed" }) }),
  toPart({ case: "text", value: " me see." }),
  toPart({ case: "image", value: IMAGE }, "c"),
];
const CALLING: Answer = {
  ...NOTHING,
  text: "Let me see.",
  reasoning: "Hm.",
  images: [IMAGE],
  calls: [CALL],
  parts: PARTS,
};

const CONVERSATION: readonly Turn[] = [
  {
    id: 1,
    role: "user",
    text: "What is this?",
    pictures: [{ id: 1, name: "a.png", mediaType: "image/png", data: PNG }],
  },
  { id: 2, role: "assistant", answer: CALLING },
  { id: 3, role: "tool", callId: "call_1", name: "get_weather", text: '{"sky":"clear"}' },
  {
    id: 4,
    role: "assistant",
    answer: { ...NOTHING, refusal: "No.", parts: [toPart({ case: "refusal", value: "No." })] },
  },
  { id: 5, role: "user", text: `It's "quoted" $HOME \`id\` \\ \u2028 \ud83d\ude00`, pictures: [] },
];

const CHOSEN: Draft["parameters"] = {
  temperature: "0.5",
  top_p: ".9",
  max_output_tokens: "50",
  seed: "-7",
  frequency_penalty: "-1.5",
  presence_penalty: "+2",
  stop_sequences: "END\n\n two words ",
  "reasoning.effort": "high",
  verbosity: "low",
  tool_choice: "required",
  response_format: "json_schema",
  "response_format.json_schema.schema_json": '{"type":"object"}',
  "image_options.aspect_ratio": "16:9",
  "image_options.size": "2K",
  modalities: "image",
  strict: "yes",
};

/** What is said and done in a request, in order, without who says it. */
function partsOf({ messages }: CompletionRequest): unknown[] {
  return messages.flatMap(({ parts }) =>
    parts.map(({ kind }) => {
      switch (kind.case) {
        case "toolCall":
          return { call: kind.value.name, input: JSON.parse(kind.value.input.value ?? "{}") as unknown };
        case "toolResult":
          return { result: partTexts(kind.value.parts).map((text) => JSON.parse(text) as unknown) };
        case "image":
          return { image: kind.value.mediaType, data: Buffer.from(kind.value.source.value ?? "").toString("hex") };
        // Not all formats have refusals.
        case "refusal":
        case "text":
          return { text: kind.value };
        default:
          return kind.case;
      }
    }),
  );
}

function partTexts(parts: readonly Part[]): string[] {
  return parts.flatMap(({ kind }) => (kind.case === "text" ? [kind.value] : []));
}

describe("the request of the playground", () => {
  it.each<[string, Partial<Draft>, readonly Turn[]]>([
    ["of one message", {}, [HELLO]],
    ["with everything that can be chosen", { parameters: CHOSEN, tools: TOOLS_EXAMPLE, system: "Be brief." }, [HELLO]],
    ["with fallback models", { fallbacks: ["other", "third"] }, [HELLO]],
    ["in the middle of a conversation", { tools: TOOLS_EXAMPLE }, CONVERSATION],
    ["for free text", { parameters: { response_format: "text" } }, [HELLO]],
    ["for any JSON", { parameters: { response_format: "json_object" } }, [HELLO]],
  ])("%s is the same over /v1/chat/completions", (_, changes, turns) => {
    const request = toRequest({ ...DRAFT, ...changes }, turns);
    const read = readChatRequest(JSON.parse(JSON.stringify(toChatJson(request))));
    expect(toJson(CompletionRequestSchema, read.request)).toEqual(toJson(CompletionRequestSchema, request));
    expect(equals(CompletionRequestSchema, read.request, request)).toBe(true);
    expect(read).toMatchObject({ stream: true, includeUsage: true });
  });

  /** Fields that formats other than Chat Completions have, or say otherwise. */
  const COMMON: Draft["parameters"] = {
    temperature: "0.5",
    top_p: ".9",
    max_output_tokens: "50",
    "reasoning.effort": "high",
    tool_choice: "required",
    response_format: "json_schema",
    "response_format.json_schema.schema_json": '{"type":"object"}',
    strict: "yes",
  };
  const CALLS: readonly Turn[] = CONVERSATION.map((turn) =>
    turn.id === 2
      ? {
          id: 2,
          role: "assistant",
          answer: { ...CALLING, parts: PARTS.filter(({ kind }) => kind.case === "toolCall") },
        }
      : turn,
  );
  const asJson = (json: unknown): unknown => JSON.parse(JSON.stringify(json));

  it.each<[string, (request: CompletionRequest) => CompletionRequest]>([
    ["Responses", (request) => readResponsesRequest(asJson(toResponsesJson(request))).request],
    [
      "Anthropic Messages",
      (request) => readMessagesRequest({ json: asJson(toMessagesJson(request)), headers: {} }).request,
    ],
    ["Gemini", (request) => readGeminiRequest(asJson(toGeminiJson(request)), request.model).request],
  ])("says the same in the format %s", (_, readBack) => {
    const draft = { ...DRAFT, parameters: COMMON, tools: TOOLS_EXAMPLE, system: "Be brief.", fallbacks: ["other"] };
    const request = toRequest(draft, CALLS);
    const read = readBack(request);
    const { model, temperature, topP, maxOutputTokens, fallbackModels, reasoning, strict } = request;
    expect(read).toMatchObject({ model, temperature, topP, maxOutputTokens, fallbackModels, strict });
    expect(read.reasoning?.effort).toBe(reasoning?.effort);
    expect(read.toolChoice?.choice).toEqual(request.toolChoice?.choice);
    expect(read.tools.map(({ kind }) => kind.case === "function" && kind.value.name)).toEqual(["get_weather"]);
    const { format } = read.responseFormat!;
    expect(format.case === "jsonSchema" && JSON.parse(format.value.schemaJson)).toEqual({ type: "object" });
    expect(partsOf(read)).toEqual(partsOf(request));
  });

  it("names what a format does not have", () => {
    const request = toRequest({ ...DRAFT, parameters: CHOSEN }, [HELLO]);
    expect(FORMATS.map(({ name, lacks }) => [name, lacks(request)])).toEqual([
      ["Chat Completions", []],
      ["Responses", ["stop sequences", "seed", "penalties", "generated images"]],
      ["Anthropic Messages", ["seed", "penalties", "verbosity", "generated images"]],
      ["Gemini", ["verbosity"]],
    ]);
  });

  it("leaves to the model what was left alone", () => {
    const blank = { temperature: " ", stop_sequences: "\n", tool_choice: "auto", response_format: "" };
    expect(toRequest({ ...DRAFT, system: " ", parameters: blank, tools: "\n" }, [HELLO])).toEqual(
      toRequest(DRAFT, [HELLO]),
    );
    expect(toRequest(DRAFT, [HELLO]).reasoning).toBeUndefined();
  });

  it.each<[Partial<Draft>, string]>([
    [{ parameters: { temperature: "hot" } }, "must be a number"],
    [{ parameters: { temperature: "1e999" } }, "must be a number"],
    [{ parameters: { max_output_tokens: "1.5" } }, "must be a whole number"],
    [{ parameters: { max_output_tokens: "99999999999" } }, "is too large"],
    [{ parameters: { response_format: "json_schema" } }, "must be a JSON schema"],
    [{ tools: "[" }, "is not JSON"],
    [{ tools: '[\n{},\n{"a" 1}]' }, "is not JSON from line 3 on"],
    [{ tools: "{}" }, "must be a list: [ … ]"],
    [{ tools: '[{"type":"custom"}]' }, '[0].type: must be "function"'],
    [{ tools: '[{"type":"function","function":{"name":"f","parameters":[]}}]' }, "must be a JSON schema"],
  ])("with %o cannot be sent", (changes, what) => {
    expect(() => toRequest({ ...DRAFT, ...changes }, [HELLO])).toThrow(what);
  });
});

describe("a program", () => {
  const write = (name: string): string => {
    const request = toChatJson(toRequest({ ...DRAFT, parameters: { strict: "yes" } }, [HELLO]));
    return CHAT_PROGRAMS.find((program) => program.name === name)!.write(request, "http://127.0.0.1:8080");
  };

  it("in Python has its own words for what JSON says, and a place for what its client does not know", () => {
    const program = write("Python");
    expect(program).toContain(
      '    messages=[\n        {\n            "role": "user",\n            "content": "Hello",\n',
    );
    expect(program).toContain("    stream=True,\n");
    expect(program).toContain(
      '    extra_body={\n        "parley": {\n            "strict": True,\n        },\n    },\n',
    );
  });

  it.each(CHAT_PROGRAMS.map(({ name }) => name))("in %s reads the secret from the environment", (name) => {
    expect(write(name)).toContain("PARLEY_API_KEY");
  });
});

describe("an answer", () => {
  const chunk = (event: Parameters<typeof create<typeof CompletionChunkSchema>>[1]) =>
    create(CompletionChunkSchema, event);

  it("is what its chunks say together", () => {
    const chunks = [chunk({ event: { case: "start", value: { id: "chatcmpl-1", model: "words" } } })];
    const writer = new ChoiceWriter(0);
    writer.text({ case: "reasoning", value: "Hm" }, chunks);
    writer.sign("reasoning", "proof", chunks);
    writer.text({ case: "text", value: "one " }, chunks);
    writer.text({ case: "text", value: "two" }, chunks);
    writer.whole(toPart({ case: "image", value: IMAGE }, "c"), chunks);
    const first = writer.beginCall({ id: "a", name: "f" }, "early", chunks);
    writer.arguments(first, "{", chunks);
    const second = writer.beginCall({ id: "b", name: "g" }, "", chunks);
    writer.arguments(second, "{}", chunks);
    writer.arguments(first, "}", chunks);
    writer.endCall(second, chunks, { signature: "late" });
    writer.finish({ reason: FinishReason.TOOL_CALLS, native: "tool_use" }, chunks);
    const answer = chunks.reduce(addChunk, NOTHING);
    expect(answer).toMatchObject({
      completionId: "chatcmpl-1",
      model: "words",
      reasoning: "Hm",
      text: "one two",
      calls: [
        { id: "a", name: "f", input: { case: "argumentsJson", value: "{}" } },
        { id: "b", name: "g", input: { case: "argumentsJson", value: "{}" } },
      ],
      finish: { finishReason: FinishReason.TOOL_CALLS },
    });
    expect(answer.images).toEqual([IMAGE]);
    expect(answer.parts).toEqual(fold(chunks).choices[0]!.message!.parts);
    expect(answer.parts.map(({ kind, signature }) => [kind.case, signature])).toEqual([
      ["reasoning", "proof"],
      ["text", ""],
      ["image", "c"],
      ["toolCall", "early"],
      ["toolCall", "late"],
    ]);
  });

  it("is taken out of the conversation with the results of its calls", () => {
    expect(withoutTurn(CONVERSATION, 2).map(({ id }) => id)).toEqual([1, 4, 5]);
    expect(withoutTurn(CONVERSATION, 5).map(({ id }) => id)).toEqual([1, 2, 3, 4]);
  });

  it("that was edited is no longer what the model's reasoning proves", () => {
    const edited = withText(CONVERSATION, 2, "Mine.")[1];
    expect(edited).toMatchObject({ answer: { text: "Mine.", calls: CALLING.calls } });
    expect((edited as { answer: Answer }).answer.parts).toEqual([
      toPart({ case: "text", value: "Mine." }),
      toPart({ case: "toolCall", value: CALL }, "a"),
      toPart({ case: "image", value: IMAGE }, "c"),
    ]);
  });

  it("waits for results as long as it is the last turn", () => {
    expect(openCalls(CONVERSATION.slice(0, 2))).toEqual(CALLING.calls);
    expect(openCalls(CONVERSATION)).toEqual([]);
  });
});
