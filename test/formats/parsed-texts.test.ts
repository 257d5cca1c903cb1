import { afterEach, describe, expect, it, vi } from "vitest";
import { MAX_RESPONSE_JSON } from "../../src/encoding/json-size.ts";
import { toInput } from "../../src/formats/anthropic/answer.ts";
import { readState, writeState } from "../../src/formats/anthropic/state.ts";
import { callPart, nativePart } from "../../src/formats/gemini/answer.ts";
import { FunctionNames } from "../../src/formats/gemini/function-names.ts";

afterEach(() => void vi.restoreAllMocks());

const deep = (levels: number): string => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

describe("an envelope of state in a signature", () => {
  it.each([
    ["many levels", `{"parley":1,"tool_call":"c","signature":"s","more":${deep(1_000)}}`],
    ["many values", `{"parley":1,"tool_call":"c","signature":"s","more":[${"0,".repeat(1_000)}0]}`],
    ["many keys", `{"parley":1,"tool_call":"c",${'"a":1,'.repeat(1_000)}"signature":"s"}`],
  ])("is none with %s, and is not parsed", (_, envelope) => {
    const parse = vi.spyOn(JSON, "parse");
    expect(readState(base64(envelope))).toBeUndefined();
    expect(parse).not.toHaveBeenCalled();
  });

  it("is one with what the gateway writes", () => {
    for (const state of [
      { toolCall: "c", signature: "{[,:".repeat(1_000) },
      { toolCall: undefined, signature: "s" },
    ])
      expect(readState(writeState(state))).toEqual(state);
  });
});

describe("arguments of a call, in a format that has them as JSON", () => {
  const tooDeep = deep(MAX_RESPONSE_JSON.depth);
  const justDeepEnough = deep(MAX_RESPONSE_JSON.depth - 1);

  it("are a text when they are too deep, and are not parsed", () => {
    const parse = vi.spyOn(JSON, "parse");
    expect(toInput(tooDeep)).toEqual({ arguments: tooDeep });
    expect(callPart({ id: "c", name: "f", args: tooDeep }, new FunctionNames())).toContain(JSON.stringify(tooDeep));
    expect(nativePart({ dialect: "gemini", json: tooDeep })).toBeUndefined();
    expect(parse).not.toHaveBeenCalled();
  });

  it("are as they are otherwise", () => {
    expect(toInput(justDeepEnough)).toEqual(JSON.parse(justDeepEnough));
    expect(callPart({ id: "c", name: "f", args: justDeepEnough }, new FunctionNames())).toContain(justDeepEnough);
  });
});
