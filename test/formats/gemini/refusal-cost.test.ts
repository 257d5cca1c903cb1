import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { validate } from "../../../src/core/validate.ts";
import { readGeminiRequest } from "../../../src/formats/gemini/request.ts";
import { parseBody } from "../../../src/inbound/http/exchange.ts";
import { compareCpuMs } from "../../support/cpu-time.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../../support/scripted-provider.ts";

const model = modelOf("m", new ScriptedProvider(new FakeClock(), {}));

/** What the gateway does with a body until it is refused. */
function refuse(body: Buffer): Failure {
  try {
    const { request } = readGeminiRequest(parseBody(body), "m");
    validate(request, model, () => []);
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
  throw new Error("the request was taken");
}

const many = (count: number, element: string): string => `[${Array(count).fill(element).join(",")}]`;
const keys = (count: number): string => Array.from({ length: count }, (_, at) => `"key_${at}":0`).join(",");
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

/** Reading a body is not free of charge either: its encoding is checked, and its values are counted. */
const FACTOR = 4;
/** Below this, a clock that counts in steps decides. */
const NOISE_MS = 8;

describe("a malformed request in the Gemini format", () => {
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
