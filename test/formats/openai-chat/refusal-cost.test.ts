import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { validate } from "../../../src/core/validate.ts";
import { readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { parseBody } from "../../../src/inbound/http/exchange.ts";
import { compareCpuMs } from "../../support/cpu-time.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../../support/scripted-provider.ts";

const model = modelOf("m", new ScriptedProvider(new FakeClock(), {}));

/** What the gateway does with a body until it is refused. */
function refuse(body: Buffer): Failure {
  try {
    const { request } = readChatRequest(parseBody(body));
    validate(request, model, () => []);
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
  throw new Error("the request was taken");
}

const many = (count: number, element: string): string => `[${Array(count).fill(element).join(",")}]`;
const body = (messages: string, more = ""): string => `{"model":"m","messages":${messages}${more}}`;
const said = (fields: string): string => body(`[{"role":"user",${fields}}]`);
const HI = '[{"role":"user","content":"hi"}]';
const CALL = '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}';
const keys = (count: number): string => Array.from({ length: count }, (_, at) => `"key${at}":0`).join(",");

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

/** Reading a body is not free of charge either: its encoding is checked, and its values are counted. */
const FACTOR = 3;
/** Below this, a clock that counts in steps decides. */
const NOISE_MS = 4;

describe("a malformed request", () => {
  it.each(Object.entries(BODIES))("costs about as much as parsing it: %s", (_, text) => {
    const bytes = Buffer.from(text);
    const failure = refuse(bytes);
    expect(["invalid_request", "request_too_large"]).toContain(failure.code);
    expect(failure.violations.length).toBeLessThanOrEqual(20);
    const bound = (parsingMs: number): number => FACTOR * parsingMs + NOISE_MS;
    const { workMs, referenceMs } = compareCpuMs(
      () => refuse(bytes),
      () => JSON.parse(bytes.toString("utf8")),
      (least) => least.workMs <= bound(least.referenceMs),
    );
    expect(workMs).toBeLessThanOrEqual(bound(referenceMs));
  });
});
