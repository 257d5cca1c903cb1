import { describe, expect, it } from "vitest";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { costOfRefusal, keys, many } from "../refusal-cost.ts";

const body = (messages: string, more = ""): string => `{"model":"m","messages":${messages}${more}}`;
const said = (fields: string): string => body(`[{"role":"user",${fields}}]`);
const HI = '[{"role":"user","content":"hi"}]';
const CALL = '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}';

/** Each is refused for its shape or its size; the first ones as the limit of keys and values would let them pass. */
const BODIES: Readonly<Record<string, string>> = {
  "190,000 numbers as content": said(`"content":${many(190_000, "0")}`),
  "numbers as content": said(`"content":${many(99_000, "0")}`),
  "few numbers as content of many messages": body(many(1_900, `{"role":"user","content":${many(40, "0")}}`)),
  "numbers as messages": body(many(99_000, "0")),
  "messages without anything": body(many(99_000, "{}")),
  "too many messages": body(many(24_000, '{"role":"user","content":""}')),
  "numbers as tool calls": said(`"tool_calls":${many(99_000, "0")}`),
  "calls without anything": said(`"tool_calls":${many(99_000, "{}")}`),
  "too many calls": body(`[{"role":"assistant","tool_calls":${many(10_000, CALL)}}]`),
  "numbers as tools": body(HI, `,"tools":${many(99_000, "0")}`),
  "tools of no kind": body(HI, `,"tools":${many(49_000, '{"type":"x"}')}`),
  "texts of a wrong type": said(`"content":${many(24_000, '{"type":"text","text":0}')}`),
  "pictures of a wrong type": said(`"content":${many(3_900, '{"type":"image_url","image_url":{"url":0}}')}`),
  "the last part wrong": said(`"content":[${'{"type":"text","text":"a"},'.repeat(3_999)}0]`),
  "reasoning of no kind": said(`"content":"a","thinking_blocks":${many(99_000, "{}")}`),
  "unknown keys": `{${keys(49_000)}}`,
  "unknown keys beside a wrong one": `{"model":"m","messages":0,${keys(49_000)}}`,
  "200,000 unknown keys": `{${keys(200_000)}}`,
  "wrong biases": body(HI, `,"logit_bias":{${keys(49_000).replaceAll(":0", ':"x"')}}`),
  "biases out of range": body(HI, `,"logit_bias":{${keys(49_000).replaceAll(":0", ":101")}}`),
  "wrong labels": body(HI, `,"metadata":{${keys(49_000)}}`),
  "too many labels": body(HI, `,"metadata":{${keys(49_000).replaceAll(":0", ':"x"')}}`),
  "empty texts to stop at": body(HI, `,"stop":${many(99_000, '""')}`),
  "modalities of no kind": body(HI, `,"modalities":${many(99_000, '"x"')}`),
  "many modalities": body(HI, `,"modalities":${many(99_000, '"text"')}`),
  "names that are none": body(HI, `,"tools":${many(1_900, '{"type":"function","function":{"name":"?"}}')}`),
  "a deep schema": body(
    HI,
    `,"tools":[{"type":"function","function":{"name":"f","parameters":${'{"a":'.repeat(99_000)}0${"}".repeat(99_000)}}}]`,
  ),
  "wide schemas that are lists": body(
    HI,
    `,"tools":${many(40, `{"type":"function","function":{"name":"f","parameters":${many(2_000, "0")}}}`)}`,
  ),
  "a choice of numbers": body(
    HI,
    `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":${many(99_000, "0")}}}`,
  ),
};

describe("a malformed request", () => {
  it.each(Object.entries(BODIES))("costs about as much as parsing it: %s", (_, text) => {
    const { workMs, limitMs } = costOfRefusal(text, readChatRequest);
    expect(workMs).toBeLessThanOrEqual(limitMs);
  });
});
