import { describe, expect, it } from "vitest";
import { omittedOf } from "../omissions.ts";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import {
  assistant,
  cached,
  call,
  PARIS,
  request,
  result,
  system,
  text,
  toolResult,
  user,
  WEATHER,
  WEATHER_SCHEMA,
} from "./builders.ts";
import { budgetModel } from "./model.ts";
import { translate } from "./translating.ts";

const MARK = { type: "ephemeral" };

describe("prompt-cache marks", () => {
  it("stand on parts and tools, with the time to live that they ask for", () => {
    const marked = request({
      tools: [cached(WEATHER, "1h")],
      messages: [user([cached(text("a"), "5m"), text("b")]), assistant([cached(text("c"))]), user("d")],
    });
    const { body, omitted } = translate(marked, budgetModel());
    expect(JSON.parse(body.toString())).toMatchObject({
      tools: [{ cache_control: { ...MARK, ttl: "1h" } }],
      messages: [
        { content: [{ text: "a", cache_control: { ...MARK, ttl: "5m" } }, { text: "b" }] },
        { content: [{ text: "c", cache_control: MARK }] },
        { content: [{ text: "d" }] },
      ],
    });
    expect(omittedOf({ omitted })).toEqual([]);
  });

  it("stand inside a tool result too", () => {
    const messages = [user("a"), assistant(undefined, { calls: [PARIS] }), toolResult(PARIS.id, [cached(text("18C"))])];
    expect(JSON.parse(translate(request({ messages, tools: [WEATHER] }), budgetModel()).body.toString())).toMatchObject(
      {
        messages: [{}, {}, { content: [{ content: [{ type: "text", text: "18C", cache_control: MARK }] }] }],
      },
    );
  });

  it("are at most four, the longer-lived ones first; what must give way is listed", () => {
    const marked = request({
      tools: [cached(WEATHER)],
      messages: [
        system([cached(text("s"), "1h")]),
        user([cached(text("a")), cached(text(" "))]),
        assistant([text("b"), cached(call(PARIS))]),
        { role: Role.TOOL, parts: [cached(result(PARIS.id, "r"), "1h")] },
        user([cached(text("c"), "2d")]),
      ],
    });
    const { body, omitted } = translate(marked, budgetModel());
    expect(JSON.parse(body.toString())).toEqual({
      model: "claude-sonnet-4-5-20250929",
      max_tokens: 8192,
      tools: [{ name: "get_weather", description: "Current weather for a city", input_schema: WEATHER_SCHEMA }],
      system: [{ type: "text", text: "s" }],
      messages: [
        { role: "user", content: [{ type: "text", text: "a", cache_control: MARK }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "b" },
            { type: "tool_use", id: PARIS.id, name: "get_weather", input: { city: "Paris" }, cache_control: MARK },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: PARIS.id, content: "r", cache_control: MARK },
            { type: "text", text: "c", cache_control: MARK },
          ],
        },
      ],
    });
    expect(omittedOf({ omitted })).toEqual([
      "messages[1].parts[1].cache_mark",
      "messages[4].parts[0].cache_mark.ttl",
      "tools[0].cache_mark",
      "messages[0].parts[0].cache_mark",
      "messages[3].parts[0].cache_mark.ttl",
    ]);
  });
});
