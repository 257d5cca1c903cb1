import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DurationSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { longestMark } from "../../../src/providers/anthropic/callers-body.ts";
import { clampsOf, omittedOf } from "../omissions.ts";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import {
  assistant,
  cached,
  call,
  HOUR,
  MINUTES,
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
      tools: [cached(WEATHER, HOUR)],
      messages: [user([cached(text("a"), MINUTES), text("b")]), assistant([cached(text("c"))]), user("d")],
    });
    const { body, omitted, clamped } = translate(marked, budgetModel());
    expect(JSON.parse(body.toString())).toMatchObject({
      tools: [{ cache_control: { ...MARK, ttl: "1h" } }],
      messages: [
        { content: [{ text: "a", cache_control: { ...MARK, ttl: "5m" } }, { text: "b" }] },
        { content: [{ text: "c", cache_control: MARK }] },
        { content: [{ text: "d" }] },
      ],
    });
    expect([omittedOf({ omitted }), clampsOf({ clamped })]).toEqual([[], []]);
  });

  it.each<[MessageInitShape<typeof DurationSchema>, string, object[]]>([
    [{ seconds: 1n }, "5m", [{ requested: "1s", sent: "300s" }]],
    [{ seconds: 299n, nanos: 500_000_000 }, "5m", [{ requested: "299.5s", sent: "300s" }]],
    [{ seconds: 300n }, "5m", []],
    [{ seconds: 300n, nanos: 1 }, "1h", [{ requested: "300.000000001s", sent: "3600s" }]],
    [{ seconds: 600n }, "1h", [{ requested: "600s", sent: "3600s" }]],
    [{ seconds: 3600n }, "1h", []],
    [{ seconds: 7200n }, "1h", [{ requested: "7200s", sent: "3600s" }]],
    [{}, "5m", [{ requested: "0s", sent: "300s" }]],
    [{ seconds: -1n, nanos: -500_000_000 }, "5m", [{ requested: "-1.5s", sent: "300s" }]],
  ])("with the time to live %o get the next longer one, %s, or the longest", (ttl, sent, clamps) => {
    const {
      body,
      omitted,
      clamped,
      sent: size,
    } = translate(request({ messages: [user([cached(text("a"), ttl)])] }), budgetModel());
    expect(JSON.parse(body.toString())).toMatchObject({
      messages: [{ content: [{ cache_control: { ...MARK, ttl: sent } }] }],
    });
    const field = "messages[0].parts[0].cache_mark.ttl";
    expect(clampsOf({ clamped })).toEqual(clamps.map((values) => ({ field, ...values })));
    expect(omittedOf({ omitted })).toEqual([]);
    expect(size.cacheWrite).toBe(sent === "1h" ? "hour" : "minutes");
  });

  it("stand inside a tool result too", () => {
    const messages = [user("a"), assistant(undefined, { calls: [PARIS] }), toolResult(PARIS.id, [cached(text("18C"))])];
    expect(JSON.parse(translate(request({ messages, tools: [WEATHER] }), budgetModel()).body.toString())).toMatchObject(
      {
        messages: [{}, {}, { content: [{ content: [{ type: "text", text: "18C", cache_control: MARK }] }] }],
      },
    );
  });

  it("of a native block are listed without a path when they are shortened", () => {
    const json = JSON.stringify({ type: "text", text: "b", cache_control: { ...MARK, ttl: "1h" } });
    const native = { kind: { case: "native", value: { dialect: "anthropic", json } } } as const;
    const marked = request({ messages: [user([cached(text("a"), MINUTES), native])] });
    const { body, clamped } = translate(marked, budgetModel());
    expect(JSON.parse(body.toString())).toMatchObject({
      messages: [{ content: [{ cache_control: { ...MARK, ttl: "5m" } }, { cache_control: MARK }] }],
    });
    expect(clampsOf({ clamped })).toEqual([{ field: "cache_mark.ttl", requested: "3600s", sent: "300s" }]);
  });

  it("are at most four, the longer-lived ones first; what must give way is listed", () => {
    const marked = request({
      tools: [cached(WEATHER)],
      messages: [
        system([cached(text("s"), HOUR)]),
        user([cached(text("a")), cached(text(" "))]),
        assistant([text("b"), cached(call(PARIS))]),
        { role: Role.TOOL, parts: [cached(result(PARIS.id, "r"), HOUR)] },
        user([cached(text("c"), { seconds: 172_800n })]),
      ],
    });
    const { body, omitted, clamped } = translate(marked, budgetModel());
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
      "tools[0].cache_mark",
      "messages[0].parts[0].cache_mark",
    ]);
    expect(clampsOf({ clamped })).toEqual([
      { field: "messages[3].parts[0].cache_mark.ttl", requested: "3600s", sent: "300s" },
      { field: "messages[4].parts[0].cache_mark.ttl", requested: "172800s", sent: "300s" },
    ]);
  });
});

describe("the longest mark of a caller's body", () => {
  it.each([
    [{ messages: [] }, "none"],
    [{ system: [{ cache_control: { type: "ephemeral" } }] }, "minutes"],
    [{ system: [{ cache_control: { type: "ephemeral", ttl: "5m" } }] }, "minutes"],
    [{ anything: { new: [{ cache_control: { type: "ephemeral", ttl: "1h" } }] } }, "hour"],
    [{ cache_control: { ttl: "a week" } }, "hour"],
    [{ messages: [{ content: '"cache_control":{"ttl":"1h"}' }] }, "none"],
  ])("of %j is %s", (body, longest) => {
    expect(longestMark(JSON.stringify(body))).toBe(longest);
  });
});
