import { create, type DescMessage, fromBinary, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionService,
  ExplainRequestSchema,
} from "../../gen/parley/v1/completion_pb.js";
import { UsageLimitsSchema } from "../../gen/parley/v1/key_pb.js";
import { validate } from "../../src/core/validate.ts";
import {
  MAX_INNER_MESSAGES,
  MAX_MESSAGE_FIELDS,
  requireDecodable,
  requireDecodableJson,
} from "../../src/inbound/arrival-limits.ts";
import { type Encoded, serviceDefinition } from "../../src/inbound/grpc/definition.ts";
import { compareCpuMs } from "../support/cpu-time.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { findFailure } from "../support/errors.ts";

const model = modelOf("m", new ScriptedProvider(new FakeClock(), {}));
const deserialize = serviceDefinition(CompletionService).create!.requestDeserialize as (
  bytes: Buffer,
) => Encoded<CompletionRequest>;

/** Empty elements of one field of a request: two bytes each on the wire. */
const empty = (field: number, count: number): Buffer => Buffer.alloc(2 * count, Buffer.from([(field << 3) | 2, 0]));

const numberOf = (name: string): number => CompletionRequestSchema.fields.find((field) => field.name === name)!.number;

describe("the size of a protobuf message", () => {
  it("is that of its inner messages", () => {
    const messages = numberOf("messages");
    const bytes = (count: number): Buffer => empty(messages, count);
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(MAX_INNER_MESSAGES)))).toBeUndefined();
    const failure = findFailure(() => requireDecodable(CompletionRequestSchema, bytes(MAX_INNER_MESSAGES + 1)));
    expect([failure?.code, failure?.message]).toEqual([
      "request_too_large",
      "The request has more than 20000 messages, parts, tool calls, tools and entries of maps together.",
    ]);
  });

  it("is that of its fields", () => {
    const request = create(CompletionRequestSchema, { stopSequences: Array<string>(MAX_MESSAGE_FIELDS + 1).fill("x") });
    const failure = findFailure(() =>
      requireDecodable(CompletionRequestSchema, toBinary(CompletionRequestSchema, request)),
    );
    expect(failure?.message).toBe("The request has more than 100000 fields.");
    const modalities = create(CompletionRequestSchema, { modalities: Array<number>(MAX_MESSAGE_FIELDS + 1).fill(1) });
    expect(
      findFailure(() => requireDecodable(CompletionRequestSchema, toBinary(CompletionRequestSchema, modalities)))?.code,
    ).toBe("request_too_large");
  });

  it("is that of entries of maps", () => {
    const bytes = (count: number): Uint8Array => {
      const metadata = Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, ""]));
      return toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { metadata }));
    };
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(MAX_INNER_MESSAGES)))).toBeUndefined();
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(MAX_INNER_MESSAGES + 1)))?.code).toBe(
      "request_too_large",
    );
  });

  it("is that of the fields in an entry of a map", () => {
    const bytes = (fields: number): Uint8Array => {
      const entry = new BinaryWriter();
      for (let count = 0; count < fields; count++) entry.tag(3, WireType.Varint).int32(1);
      return new BinaryWriter().tag(numberOf("metadata"), WireType.LengthDelimited).bytes(entry.finish()).finish();
    };
    const most = MAX_MESSAGE_FIELDS - 1;
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(most)))).toBeUndefined();
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(most + 1)))?.message).toBe(
      "The request has more than 100000 fields.",
    );
  });

  it("is that of groups, which are read as one unknown field", () => {
    const bytes = (fields: number): Uint8Array => {
      const writer = new BinaryWriter().tag(100, WireType.StartGroup).tag(1, WireType.StartGroup);
      for (let count = 0; count < fields; count++) writer.tag(2, WireType.Varint).int32(1);
      return writer.tag(1, WireType.EndGroup).tag(100, WireType.EndGroup).finish();
    };
    const most = MAX_MESSAGE_FIELDS - 4;
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(most)))).toBeUndefined();
    expect(findFailure(() => requireDecodable(CompletionRequestSchema, bytes(most + 1)))?.message).toBe(
      "The request has more than 100000 fields.",
    );
  });

  it("is the same in JSON", () => {
    const json = (count: number): JsonValue => ({ messages: [{ parts: Array.from({ length: count }, () => ({})) }] });
    const find = (count: number) => findFailure(() => requireDecodableJson(CompletionRequestSchema, json(count)));
    expect(find(MAX_INNER_MESSAGES - 2)).toBeUndefined();
    expect(find(MAX_INNER_MESSAGES - 1)?.code).toBe("request_too_large");
  });
});

describe("a number of 64 bits in protobuf's JSON", () => {
  const digits = "9".repeat(1_000_000);
  const find = (desc: DescMessage, json: JsonValue) => findFailure(() => requireDecodableJson(desc, json));

  it.each<readonly [string, DescMessage, JsonValue]>([
    ["seed", CompletionRequestSchema, { seed: digits }],
    ["seed", ExplainRequestSchema, { completion: { seed: `0${digits}` } }],
    ["tokens_per_minute", UsageLimitsSchema, { tokensPerMinute: digits }],
    ["tokens_per_minute", UsageLimitsSchema, { tokens_per_minute: digits }],
  ])("is refused before it is parsed when it has too many digits: %s", (name, desc, json) => {
    const description = "must be a whole number of 64 bits";
    expect(find(desc, json)?.violations).toEqual([{ field: name, description }]);
  });

  it("may have any digits that it needs, and a text any number of them", () => {
    const json = {
      seed: "-9223372036854775808",
      messages: [{ parts: [{ text: digits }] }],
      metadata: { seed: digits },
    };
    expect(find(CompletionRequestSchema, json)).toBeUndefined();
  });
});

/** Checks that `work` takes at most twice the processor time of `decode`, and 5 ms. */
function expectLittleMore(work: () => unknown, decode: () => unknown): void {
  const bound = (decodingMs: number): number => 2 * decodingMs + 5;
  const { workMs, referenceMs } = compareCpuMs(work, decode, (least) => least.workMs <= bound(least.referenceMs));
  expect(workMs).toBeLessThanOrEqual(bound(referenceMs));
}

describe("a malformed protobuf message", () => {
  const text = (length: number): string => "x".repeat(length);
  /** Nearly as many as a message may have. */
  const emptyParts = (): Record<string, never>[] => Array.from({ length: 3_800 }, () => ({}));
  const requests: Readonly<Record<string, Buffer | Uint8Array>> = {
    "300,000 messages": empty(numberOf("messages"), 300_000),
    "messages without anything": empty(numberOf("messages"), 19_000),
    "tools without anything": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, { tools: Array.from({ length: 19_000 }, () => ({})) }),
    ),
    "empty texts to stop at": empty(numberOf("stop_sequences"), 99_000),
    "parts without anything": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, {
        messages: Array.from({ length: 5 }, () => ({ role: 2, parts: emptyParts() })),
      }),
    ),
    "wrong parts in a system message": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, {
        messages: Array.from({ length: 1900 }, () => ({
          role: 1,
          parts: Array.from({ length: 3 }, () => ({
            kind: { case: "image" as const, value: { source: { case: "url" as const, value: "http:" } } },
          })),
        })),
      }),
    ),
    "biases out of range": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, {
        logitBias: Object.fromEntries(Array.from({ length: 30_000 }, (_, at) => [`token${at}`, 101])),
      }),
    ),
    "modalities of no kind": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, { modalities: Array.from({ length: 40_000 }, (_, at) => at + 10) }),
    ),
    "schemas of many values": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, {
        tools: Array.from({ length: 20 }, () => ({
          kind: { case: "function" as const, value: { name: "f", parametersJson: `{"a":[${"0,".repeat(50_000)}0]}` } },
        })),
      }),
    ),
    "a deep schema": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, {
        tools: [{ kind: { case: "function", value: { name: "f", parametersJson: "[".repeat(2_000_000) } } }],
      }),
    ),
    "a long name": toBinary(
      CompletionRequestSchema,
      create(CompletionRequestSchema, { providerOptionsJson: { [text(2_000_000)]: "1" } }),
    ),
  };

  it.each(Object.entries(requests))("costs little more than decoding it: %s", (_, given) => {
    // Reading releases the bytes.
    const refuse = (): void => validate(deserialize(Buffer.from(given)).read(), model, () => []);
    const failure = findFailure(refuse)!;
    expect(["invalid_request", "request_too_large"]).toContain(failure.code);
    expectLittleMore(
      () => findFailure(refuse),
      () => fromBinary(CompletionRequestSchema, given),
    );
  });

  it("costs little more than decoding it when its JSON is refused", () => {
    const json: JsonValue = {
      messages: Array.from({ length: 5 }, () => ({ role: "ROLE_USER", parts: emptyParts() })),
    };
    const refuse = (): void => {
      requireDecodableJson(CompletionRequestSchema, json);
      validate(fromJson(CompletionRequestSchema, json), model, () => []);
    };
    expect(findFailure(refuse)?.violations.length).toBe(20);
    expectLittleMore(
      () => findFailure(refuse),
      () => fromJson(CompletionRequestSchema, json),
    );
  });
});
