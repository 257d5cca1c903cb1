import { describe, expect, it } from "vitest";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { ImageDetail } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import {
  assistant,
  call,
  effort,
  image,
  imageUrl,
  PARIS,
  PNG,
  reasoning,
  request,
  SIGNED,
  system,
  text,
  TIME,
  toolResult,
  user,
  WEATHER,
} from "./builders.ts";
import { readFixtureJson } from "./fixtures.ts";
import { adaptiveModel, budgetModel, switchableModel } from "./model.ts";
import { translate } from "./translating.ts";

/** Our contract does not tell a string from a list of one text: both are the same to the provider. */
function withResultLists(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (_, value: unknown) => {
    const block = value as { type?: string; content?: unknown } | null;
    const plain = block?.type === "tool_result" && typeof block.content === "string";
    return plain ? { ...block, content: [{ type: "text", text: block.content }] } : value;
  });
}

describe("the request of fixture", () => {
  const rows: [number: string, what: string, request: CompletionRequest, model: UpstreamModel, mode?: "stream"][] = [
    [
      "01",
      "system messages, a clamped temperature and the default token limit (traps 36, 58, 60)",
      request({
        messages: [system("You are terse."), system("Answer in English."), user("Say hi")],
        temperature: 1.4,
        endUserId: "u-42",
      }),
      budgetModel(),
    ],
    [
      "02",
      "a stream with stop sequences (trap 55)",
      request({ maxOutputTokens: 64, stopSequences: ["END", "\n"], messages: [user("Greet me in Japanese")] }),
      budgetModel(),
      "stream",
    ],
    [
      "03",
      "a forced tool, one at a time",
      request({
        maxOutputTokens: 256,
        messages: [user("Weather in Paris?")],
        tools: [WEATHER],
        toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } },
        parallelToolCalls: false,
      }),
      budgetModel(),
    ],
    [
      "04",
      "several tools",
      request({
        maxOutputTokens: 512,
        messages: [user("Weather in Paris and Rome, and the time?")],
        tools: [WEATHER, TIME],
      }),
      budgetModel(),
      "stream",
    ],
    [
      "05",
      "tool results that join the user's next turn (traps 40, 42, 44, 45)",
      request({
        maxOutputTokens: 128,
        tools: [WEATHER, TIME],
        messages: [
          user("Weather in Paris and time?"),
          assistant(undefined, {
            calls: [
              { id: "call.1:a", name: "get_weather", argumentsJson: '{"city":"Paris"}' },
              { id: "call_2", name: "get_time", argumentsJson: "" },
            ],
          }),
          toolResult("call.1:a", "18C"),
          toolResult("call_2", "12:00"),
          user("Thanks, summarise."),
        ],
      }),
      budgetModel(),
    ],
    [
      "06",
      "pictures by bytes and by address",
      request({
        maxOutputTokens: 64,
        messages: [user([text("Compare"), image(PNG, ImageDetail.LOW), imageUrl("https://example.com/a.jpg")])],
      }),
      budgetModel(),
    ],
    [
      "07",
      "an effort as a budget, without a temperature (trap 58)",
      request({
        maxOutputTokens: 2000,
        reasoning: effort(ReasoningEffort.LOW),
        temperature: 0.2,
        messages: [user("2+2?")],
      }),
      budgetModel(),
      "stream",
    ],
    [
      "08",
      "reasoning that comes back in a tool loop",
      request({
        maxOutputTokens: 2048,
        reasoning: effort(ReasoningEffort.LOW),
        tools: [WEATHER],
        messages: [
          user("Weather in Paris?"),
          assistant(undefined, { reasoning: [SIGNED], calls: [PARIS] }),
          toolResult("toolu_01Paris", "18C"),
        ],
      }),
      budgetModel(),
    ],
    [
      "09",
      "an adapted effort, without sampling parameters (trap 58)",
      request({
        maxOutputTokens: 200,
        temperature: 0.3,
        topP: 0.9,
        reasoning: effort(ReasoningEffort.MINIMAL),
        messages: [user("…")],
      }),
      adaptiveModel(),
      "stream",
    ],
    [
      "10",
      "a JSON schema in the form that is enforced (trap 64)",
      request({
        maxOutputTokens: 100,
        messages: [user("Pick a number")],
        responseFormat: {
          format: {
            case: "jsonSchema",
            value: {
              name: "answer",
              strict: true,
              schemaJson: JSON.stringify({
                type: "object",
                properties: { n: { type: "integer", minimum: 1 } },
                required: ["n"],
                additionalProperties: false,
              }),
            },
          },
        },
      }),
      budgetModel(),
    ],
    [
      "17",
      "a model that reasons unasked",
      request({ maxOutputTokens: 4000, tools: [WEATHER], messages: [user("Weather in Paris?")] }),
      adaptiveModel(),
      "stream",
    ],
    [
      "18",
      "interleaved reasoning back in its places (traps 94, 95, 96)",
      request({
        maxOutputTokens: 4000,
        tools: [WEATHER],
        messages: [
          user("Weather in Paris?"),
          assistant([
            reasoning({ text: "Need data.", signature: "EqQBsigA==" }),
            text("Looking it up. "),
            reasoning({ signature: "EqQBsigB==" }),
            call({ ...PARIS, argumentsJson: '{"city": "Paris"}' }),
          ]),
          toolResult("toolu_01Paris", "18C"),
        ],
      }),
      adaptiveModel(),
    ],
    [
      "19",
      "a system message in the middle of the conversation (trap 37)",
      request({
        maxOutputTokens: 1000,
        messages: [
          system("You are terse."),
          user("Hi"),
          assistant("Hello."),
          user("Rename the file."),
          system("The workspace is read-only now."),
        ],
      }),
      switchableModel(),
    ],
  ];

  it.each(rows)("%s: %s", (number, _, asked, model, mode) => {
    const body: unknown = JSON.parse(translate(asked, model, mode).body.toString());
    expect(withResultLists(body)).toEqual(withResultLists(readFixtureJson(number, "upstream-request.json")));
  });
});
