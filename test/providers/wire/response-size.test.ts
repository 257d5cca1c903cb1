import { describe, expect, it } from "vitest";
import { MAX_EVENT_JSON, MAX_RESPONSE_JSON } from "../../../src/encoding/json-size.ts";
import { parsed } from "../../../src/providers/wire/json.ts";
import { parseResponse } from "../../../src/providers/wire/parse-response.ts";
import { EventJson } from "../../../src/providers/wire/sse.ts";
import { cpuMs } from "../../support/cpu-time.ts";
import { findFailure } from "../../support/errors.ts";

const nested = (depth: number): string => `{"input":${'{"a":'.repeat(depth - 1)}1${"}".repeat(depth - 1)}}`;

const COMPLEX = [
  ["brackets", "[".repeat(4_000_000)],
  ["objects in a tool's arguments", nested(1_000_000)],
  ["one level more than are read", `{"text":"${"x".repeat(16 * 1024)}","a":${nested(MAX_RESPONSE_JSON.depth)}}`],
  ["tiny values", `[${"0,".repeat(3_000_000)}0]`],
] as const;

describe("an answer that is too complex", () => {
  it.each(COMPLEX)("is refused whole: %s", (_, text) => {
    expect(findFailure(() => parseResponse([Buffer.from(text)]))?.code).toBe("upstream_protocol");
    expect(findFailure(() => parseResponse([Buffer.from(text.slice(0, 9)), Buffer.from(text.slice(9))]))?.code).toBe(
      "upstream_protocol",
    );
  });

  it.each(COMPLEX)("is refused as an event: %s", (_, text) => {
    expect(findFailure(() => new EventJson().read(text))?.code).toBe("upstream_protocol");
  });

  it("is refused as an event at fewer values than as a whole answer: an event has a token, and is sent on in one turn", () => {
    const text = `{"text":[${"0,".repeat(MAX_EVENT_JSON.values)}0]}`;
    expect(findFailure(() => new EventJson().read(text))?.code).toBe("upstream_protocol");
    expect(parseResponse([Buffer.from(text)])).toHaveProperty("text");
  });

  it.each(COMPLEX)("is no JSON where a text in it is parsed: %s", (_, text) => {
    expect(parsed(text)).toBeUndefined();
  });

  it("costs less than its bytes would as plain JSON", () => {
    const bytes = Buffer.from(nested(2_000_000));
    const plain = JSON.stringify(Array.from({ length: bytes.length / 10 }, (_, at) => `text ${at}`));
    const plainMs = cpuMs(() => JSON.parse(plain));
    expect(cpuMs(() => findFailure(() => parseResponse([bytes])))).toBeLessThan(Math.max(plainMs, 20));
  });

  it("is read when it is as deep as the limit", () => {
    const text = `{"text":"${"x".repeat(16 * 1024)}","a":${nested(MAX_RESPONSE_JSON.depth - 1)}}`;
    expect(parseResponse([Buffer.from(text)])).toHaveProperty("text");
    expect(new EventJson().read(text)).toHaveProperty("text");
    expect(parsed(text)).toHaveProperty("text");
  });
});
