import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Choice,
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
  FinishReason,
} from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { AnswerBuilder } from "../../src/core/answer-builder.ts";
import { ChoiceWriter, finishChunk, toPart } from "../../src/core/chunks.ts";
import { AnswerSeal, createStateSeal, openState } from "../../src/core/provider-state.ts";
import type { CallersBody } from "../../src/core/provider.ts";
import { seal } from "../support/core-ports.ts";
import { chunksOfPart } from "../support/to-chunks.ts";

const OWNER = { accountId: "acct_1", provider: "one" };
const STATES = ["c2ln", "c2lnbg==", "gAAA_-x", "not base64 é", "a", "PLY1"];

const text = (value: string, signature = ""): Part => toPart({ case: "text", value }, signature);
const thought = (said: string, redacted: string, signature = ""): Part =>
  toPart({ case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: said, redacted } }, signature);
const call = (id: string, signature: string): Part =>
  toPart(
    {
      case: "toolCall",
      value: { $typeName: "parley.v1.ToolCall", id, name: "f", input: { case: "argumentsJson", value: "{}" } },
    },
    signature,
  );
const native = (block: object): Part =>
  toPart({
    case: "native",
    value: { $typeName: "parley.v1.NativeBlock", dialect: "d", json: JSON.stringify(block) },
  });

/** The parts of an answer as its caller gets them, whole or streamed. */
function sealed(parts: readonly Part[], { how = "whole", owner = OWNER } = {}): Part[] {
  const chunks: CompletionChunk[] = parts.flatMap((part, at) => chunksOfPart(structuredClone(part), 0, at));
  chunks.push(finishChunk(0, { reason: FinishReason.STOP, native: "" }));
  const answer = new AnswerSeal(seal, owner);
  const builder = new AnswerBuilder();
  for (const chunk of how === "whole" ? chunks : chunks.flatMap((each) => answer.chunks([each]))) builder.add(chunk);
  const [choice] = builder.build().choices as [Choice];
  if (how === "whole") answer.choices([choice]);
  return choice.message!.parts;
}

function requestOf(parts: Part[], role = Role.ASSISTANT): CompletionRequest {
  return create(CompletionRequestSchema, { messages: [{ role, parts }] });
}

/** A request with these parts for a provider, and what it loses. */
function opened(
  parts: Part[],
  {
    accountId = OWNER.accountId,
    provider = OWNER.provider,
    role = Role.ASSISTANT,
    body = undefined as CallersBody | undefined,
  } = {},
): { parts: Part[]; omitted: string[] } {
  const request = requestOf(parts, role);
  const given = openState(request, { seal, accountId, body })?.for(provider) ?? { request, omitted: [] };
  for (const { reason } of given.omitted) expect(reason).toBe(OmissionReason.FOREIGN_STATE);
  return {
    parts: given.request.messages[0]!.parts,
    omitted: given.omitted.map(({ field }) => field.slice("messages[0].".length)),
  };
}

describe("sealed state", () => {
  it.each(STATES)("is base64 where it was, 32 characters longer, and opened for its account: %s", (state) => {
    const given = seal.seal(state, OWNER);
    expect(given).toMatch(/^PLY1[A-Za-z0-9]{28}/);
    expect(given.slice(32)).toBe(state);
    expect(seal.open(given, "acct_1")).toEqual({ state, tag: seal.tagOf("one") });
    expect(seal.open(given, "acct_2")).toBeUndefined();
    expect(createStateSeal(Buffer.alloc(32)).open(given, "acct_1")).toBeUndefined();
    expect(seal.tagOf("two")).not.toBe(seal.tagOf("one"));
  });

  it("is opened in the other alphabet of base64, as some clients send it back", () => {
    const given = seal.seal("+/+/+8==", OWNER);
    const other = given.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
    expect(seal.open(other, "acct_1")?.state).toBe("-_-_-8");
  });

  it("is nothing after any change", () => {
    const given = seal.seal("c2lnbmF0dXJl", OWNER);
    fc.assert(
      fc.property(fc.nat(given.length - 1), fc.constantFrom("a", "B", "3", "+", "="), (at, char) => {
        fc.pre(given[at] !== char);
        expect(seal.open(given.slice(0, at) + char + given.slice(at + 1), "acct_1")).toBeUndefined();
      }),
    );
    expect(seal.open(given.slice(0, 32), "acct_1")).toBeUndefined();
    expect(seal.open(given.slice(0, -1), "acct_1")).toBeUndefined();
  });
});

const someText = fc.string({ minLength: 1, maxLength: 12 });
const someState = fc.oneof(fc.constant(""), someText);
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ value: someText, signature: someState }).map(({ value, signature }) => text(value, signature)),
  fc.record({ value: someText, signature: someState }).map(({ value, signature }) => thought(value, "", signature)),
  someText.map((redacted) => thought("", redacted)),
  someState.map((signature) => call("c", signature)),
  fc.record({ encrypted_content: someText, signature: someText, later: fc.jsonValue() }).map(native),
);

describe("an answer", () => {
  it.each(["whole", "streamed"])("comes back as the provider gave it, %s", (how) => {
    fc.assert(
      fc.property(fc.array(anyPart, { minLength: 1, maxLength: 6 }), (parts) => {
        const given = sealed(parts, { how });
        expect(given.map(({ kind }) => kind.case)).toEqual(parts.map(({ kind }) => kind.case));
        for (const [at, { signature }] of given.entries()) expect(signature.slice(32)).toBe(parts[at]!.signature);
        expect(opened(structuredClone(given))).toEqual({ parts, omitted: [] });
      }),
    );
  });

  it("has the state of native blocks sealed, and not what tools are called with", () => {
    const block = {
      type: "x",
      signature: "s",
      input: { encrypted_content: "model's", signature: "model's" },
      content: [{ encrypted_content: "e", signature: "text", big: 1 }],
    };
    const [part] = sealed([native(block)]);
    const json = part!.kind.case === "native" ? part!.kind.value.json : "";
    expect(JSON.parse(json)).toEqual({
      ...block,
      signature: seal.seal("s", OWNER),
      content: [{ encrypted_content: seal.seal("e", OWNER), signature: "text", big: 1 }],
    });
  });

  it("keeps the digits of large numbers in native blocks", () => {
    const json = '{"encrypted_content":"e","big":12345678901234567890}';
    const part = toPart({ case: "native", value: { $typeName: "parley.v1.NativeBlock", dialect: "d", json } });
    expect(opened(sealed([part])).parts[0]!.kind.value).toMatchObject({ json });
  });

  it("is streamed in the same pieces, but for native blocks, which come at their end", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    writer.text({ case: "text", value: "a" }, out);
    writer.native({ dialect: "d", json: '{"encrypted_content":"e"}' }, out);
    const answer = new AnswerSeal(seal, OWNER);
    const given = out.map((chunk) => answer.chunks([chunk]).map(({ event }) => event.case));
    expect(given).toEqual([
      ["partStart"],
      ["partDelta"],
      ["partFinish"],
      ["partStart"],
      [],
      ["partDelta", "partFinish"],
    ]);
    const plain: CompletionChunk[] = [];
    writer.text({ case: "text", value: "b" }, plain);
    expect(answer.chunks(plain)).toBe(plain);
  });
});

describe("state of another provider or account, and what was never given", () => {
  const parts = (): Part[] =>
    sealed([
      thought("Hm", "", "s"),
      thought("", "r"),
      text("a", "s"),
      call("c", "s"),
      native({ encrypted_index: "e" }),
    ]);
  const LOST = ["parts[0]", "parts[1]", "parts[2].signature", "parts[3].signature", "parts[4]"];

  it.each<[string, Parameters<typeof opened>[1]]>([
    ["another provider", { provider: "two" }],
    ["another account", { accountId: "acct_2" }],
  ])("is left out and listed: of %s", (_, asked) => {
    const { parts: left, omitted } = opened(parts(), asked);
    expect(omitted).toEqual(LOST);
    expect(left.map(({ signature }) => signature).join("")).toBe("");
    expect(left[0]!.kind.value).toMatchObject({ text: "Hm", redacted: "" });
    expect(left[1]!.kind.value).toMatchObject({ text: "", redacted: "" });
    expect(left[4]!.kind).toEqual({ case: undefined });
  });

  it("is left out and listed: without a seal", () => {
    const given = [
      thought("Hm", "", "s"),
      thought("", "r"),
      text("a", "s"),
      call("c", "s"),
      native({ encrypted_index: "e" }),
    ];
    expect(opened(given).omitted).toEqual(LOST);
  });

  it("does not remove the state of others, and each provider gets its own", () => {
    const both = [...sealed([text("a", "s")]), ...sealed([text("b", "t")], { owner: { ...OWNER, provider: "two" } })];
    const request = requestOf(both);
    const given = openState(request, { seal, accountId: OWNER.accountId, body: undefined })!;
    const signatures = (provider: string): string[] =>
      given.for(provider).request.messages[0]!.parts.map(({ signature }) => signature);
    expect(signatures("one")).toEqual(["s", ""]);
    expect(signatures("two")).toEqual(["", "t"]);
    expect(signatures("three")).toEqual(["", ""]);
  });

  it("removes the other native blocks of its message too: a result without its call would be refused", () => {
    const call1 = native({ type: "server_tool_use", id: "1" });
    const { omitted } = opened([call1, text("a"), native({ tool_use_id: "1", encrypted_content: "forged" })]);
    expect(omitted).toEqual(["parts[0]", "parts[2]"]);
  });

  it("is no state in what callers write", () => {
    const given = native({ type: "document", encrypted_content: "mine", signature: "mine" });
    expect(opened([given], { role: Role.USER })).toEqual({ parts: [given], omitted: [] });
  });

  it("is no state where it is what the vendor documents in place of a lost signature", () => {
    const words = "skip_thought_signature_validator";
    const given = [call("a", words), call("b", Buffer.from(words).toString("base64"))];
    expect(opened(structuredClone(given))).toEqual({ parts: given, omitted: [] });
  });
});

it("lists a thousand places at most", () => {
  const given = Array.from({ length: 1_500 }, () => text("a", "s"));
  expect(opened(given).omitted).toHaveLength(1_000);
});

describe("the caller's own body", () => {
  const bodyOf = (json: CallersBody["json"]): CallersBody => ({ dialect: "d", mayHaveMore: true, json });

  it("is opened too, and shares what has no state", () => {
    const state = seal.seal("s", OWNER);
    const same = { deep: [{ text: "PLY1 is no state" }] };
    const body = bodyOf({ same, ["__proto__"]: 1, list: [{ a: state }, { b: `x${state}` }] });
    opened([text("a", state)], { body });
    expect(body.json).toEqual({ same, ["__proto__"]: 1, list: [{ a: "s" }, { b: `x${state}` }] });
    expect(body.json!["same"]).toBe(same);
  });

  it("is as it was without state, and nothing is copied", () => {
    const json = { a: [seal.seal("s", OWNER)] };
    const body = bodyOf(json);
    expect(openState(requestOf([text("a")]), { seal, accountId: "acct_1", body })).toBeUndefined();
    expect(body.json).toBe(json);
  });
});
