import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import { toGeminiRequest } from "../../../src/providers/gemini/request.ts";
import { PNG, ask, body, call, answer, pictures, request, result, system, translate, type Fields } from "./ask.ts";
import { jsonOf } from "./fixture.ts";
import { flash, painter } from "./model.ts";

const WEATHER = {
  function: {
    name: "get_weather",
    description: "Current weather for a city",
    parametersJson: JSON.stringify({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    }),
  },
};
const TIME = {
  function: {
    name: "get_time",
    description: "Current time, no arguments",
    parametersJson: '{"type":"object","properties":{}}',
  },
};
describe("the fixtures", () => {
  it.each<[string, Fields, UpstreamModel, omitted?: string[]]>([
    [
      "20-gemini-text",
      {
        messages: [system("You are terse."), ask("Say hi")],
        temperature: 0.5,
        topP: 0.9,
        maxOutputTokens: 100,
        stopSequences: ["END"],
        seed: "7",
        reasoning: { effort: "REASONING_EFFORT_LOW" },
      },
      flash(),
    ],
    ["21-gemini-text-stream", { messages: [ask("Write ÅÄÖ and 🐙")] }, flash()],
    [
      "22-gemini-tool-call",
      { messages: [ask("Weather in Paris?")], tools: [WEATHER, TIME], toolChoice: { function: "get_weather" } },
      flash(),
    ],
    [
      "23-gemini-tools-parallel-stream",
      { messages: [ask("Weather in Paris and Rome, and the time?")], tools: [WEATHER, TIME] },
      flash(),
    ],
    [
      "24-gemini-tool-results",
      {
        tools: [WEATHER, TIME],
        messages: [
          ask("Weather in Paris and time?"),
          answer(
            { text: "" },
            call("fc_a", { name: "get_weather", argumentsJson: '{"city":"Paris"}', signature: "c2lnLWZj" }),
            call("fc_c", { name: "get_time" }),
          ),
          result("fc_a", '{"temp":18}'),
          result("fc_c", "12:00"),
          answer(call("fc_d", { name: "get_weather", argumentsJson: '{"city":"Rome"}' })),
          result("fc_d", "20C"),
        ],
      },
      flash(),
    ],
    [
      "25-gemini-vision",
      {
        messages: [
          {
            role: "ROLE_USER",
            parts: [
              { image: { data: PNG, mediaType: "image/png" } },
              { audio: { data: "UklGRg==", mediaType: "audio/wav" } },
              { file: { data: "JVBERi0=", name: "a.pdf", mediaType: "application/pdf" } },
              { text: "What is this?" },
            ],
          },
        ],
      },
      flash(),
      ["messages[0].parts[2].file.name"],
    ],
    [
      "26-gemini-image-out",
      { messages: [ask("Draw a dot")], modalities: pictures, imageOptions: { aspectRatio: "16:9", size: "2K" } },
      painter(),
    ],
    ["27-gemini-image-out-stream", { messages: [ask("Two dots please")], modalities: pictures }, painter()],
    ["28-gemini-thinking-stream", { messages: [ask("2+2?")], reasoning: { effort: "REASONING_EFFORT_HIGH" } }, flash()],
  ])("%s becomes the recorded body", (scenario, fields, model, omitted = []) => {
    expect(body(fields, model)).toEqual(jsonOf(scenario, "upstream-request.json"));
    expect(omittedOf(translate(fields, model))).toEqual(omitted);
    expect(translate(fields, model).clamped).toEqual([]);
  });
});

describe("a translation", () => {
  it("is the same bytes for the same request, in both modes", () => {
    const asked = request({ tools: [WEATHER], messages: [ask("a"), answer(call("x")), result("x", "1")] });
    const whole = toGeminiRequest(asked, flash(), { mode: "whole" });
    expect(toGeminiRequest(asked, flash(), { mode: "whole" })).toEqual(whole);
    expect(toGeminiRequest(asked, flash(), { mode: "stream" }).body).toEqual(whole.body);
  });

  it.each([
    ["a stream always", "stream", {}, 1e9, true],
    ["a whole answer within the limit not", "whole", { maxOutputTokens: 100 }, 100, false],
    ["a whole answer above the limit", "whole", { maxOutputTokens: 101 }, 100, true],
    ["a whole answer of the default length above the limit", "whole", {}, 8191, true],
    ["a whole answer of the default length within the limit not", "whole", {}, 8192, false],
  ] as const)("trap 17: streams %s", (_, mode, fields, streamAbove, streamed) => {
    expect(toGeminiRequest(request(fields), flash({ streamAbove }), { mode }).streamed).toBe(streamed);
  });
});
