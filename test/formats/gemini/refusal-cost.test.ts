import { describe, expect, it } from "vitest";
import { readGeminiRequest } from "../../../src/formats/gemini/request.ts";
import { costOfRefusal, keys, many } from "../refusal-cost.ts";

const said = (parts: string): string => `{"contents":[{"parts":${parts}}]}`;
const HI = '"contents":[{"parts":[{"text":"hi"}]}]';
const ENVELOPE = Buffer.from(`{"parley":1,"reasoning":${many(60, "{}")}}`).toString("base64");

/** Each is refused for its shape or its size. */
const BODIES: Readonly<Record<string, string>> = {
  "numbers as contents": `{"contents":${many(99_000, "0")}}`,
  "contents without anything": `{"contents":${many(99_000, "{}")}}`,
  "numbers as parts": said(many(99_000, "0")),
  "parts without anything": said(many(99_000, "{}")),
  "too many contents": `{"contents":${many(19_000, '{"parts":[{"text":"a"}]}')}}`,
  "texts of a wrong type": said(many(3_900, '{"text":0}')),
  "names in another spelling": said(many(3_900, '{"inline_data":{"mime_type":0,"data":0}}')),
  "unknown keys": `{${keys(49_000)}}`,
  "unknown keys beside a wrong one": `{"contents":0,${keys(49_000)}}`,
  "numbers as tools": `{${HI},"tools":${many(99_000, "0")}}`,
  "too many functions": `{${HI},"tools":[{"functionDeclarations":${many(30_000, '{"name":"f"}')}}]}`,
  "names that are none": `{${HI},"tools":[{"functionDeclarations":${many(1_900, '{"name":"?"}')}}]}`,
  "reasoning in every signature": `{"contents":[{"role":"model","parts":${many(3_900, `{"text":"a","thoughtSignature":"${ENVELOPE}"}`)}}]}`,
  "responses without calls": said(many(3_900, '{"functionResponse":{"name":"f","id":"x"}}')),
};

describe("a malformed request in the Gemini format", () => {
  it.each(Object.entries(BODIES))("costs about as much as parsing it: %s", (_, text) => {
    const { workMs, limitMs } = costOfRefusal(text, (json) => readGeminiRequest(json, "m"));
    expect(workMs).toBeLessThanOrEqual(limitMs);
  });
});
