import { describe, expect, it } from "vitest";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk } from "../../../src/core/chunks.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { Emit, UpstreamCall } from "../../../src/core/provider.ts";
import { toFailure } from "../../../src/providers/gemini/failure.ts";
import { isSigned, unsignedOrThrow } from "../../../src/providers/gemini/foreign-signatures.ts";
import { askForgiving, streamForgiving } from "../../../src/providers/wire/ask-again.ts";
import { answer as turn, ask, type Body, call, result, say, translate } from "./ask.ts";
import { flash } from "./model.ts";

const SENTINEL = "skip_thought_signature_validator";

const refuse = (message: string): Failure =>
  toFailure({
    status: 400,
    headers: {},
    body: JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }),
  });
const CORRUPTED = refuse("Corrupted thought signature.");

function callWith(signature: string): UpstreamCall {
  const turns = [
    turn(call("x", { signature, argumentsJson: '{"id":12345678901234567890}' })),
    result("x", "1"),
    say("so", signature),
  ];
  const translation = translate({ messages: [ask("a"), ...turns, ask("b")] });
  return { model: flash(), translation, signal: new AbortController().signal, idleMs: 1 };
}

const signaturesIn = (body: string): unknown[] =>
  (JSON.parse(body) as Body).contents.flatMap(({ parts }) => parts.map((part) => part["thoughtSignature"]));

/** A provider that refuses the first calls for these reasons; what it was sent. */
function provider(...reasons: Failure[]): {
  readonly sent: string[];
  readonly answer: (asked: UpstreamCall) => string;
} {
  const sent: string[] = [];
  const left = [...reasons];
  return {
    sent,
    answer: ({ translation: { body } }) => {
      sent.push(body.toString());
      const reason = left.shift();
      if (reason !== undefined) throw reason;
      return "answer";
    },
  };
}

const sayChunk = (text: string): CompletionChunk =>
  deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value: text });

/** The texts of a stream. */
async function streamed(
  asked: UpstreamCall,
  answer: (once: UpstreamCall, emit: Emit) => Promise<void>,
  said: string[] = [],
): Promise<string[]> {
  const textOf = ({ event }: CompletionChunk): string =>
    event.case === "partDelta" && event.value.content.case === "text" ? event.value.content.value : "";
  const emit = (batch: Parameters<Emit>[0]): undefined => void said.push(...batch.map(textOf));
  await streamForgiving(asked, answer, { emit, toNext: unsignedOrThrow });
  return said;
}

describe("trap 99: signatures that another account or route made", () => {
  it.each([
    ["a whole answer", true],
    ["a stream", false],
  ])("are replaced, and %s asked for once more", async (_, whole) => {
    const { sent, answer } = provider(CORRUPTED);
    const said = whole
      ? [await askForgiving(callWith("c2ln"), async (asked) => answer(asked), unsignedOrThrow)]
      : await streamed(callWith("c2ln"), async (asked, emit) => {
          await emit([sayChunk(answer(asked))]);
        });
    expect(said).toEqual(["answer"]);
    expect(sent.map(signaturesIn)).toEqual(
      ["c2ln", SENTINEL].map((signature) => [undefined, signature, undefined, signature, undefined]),
    );
    expect(sent[1]).toBe(sent[0]?.replaceAll("c2ln", SENTINEL));
    expect(sent[1]).toContain('"id":12345678901234567890');
  });

  it.each([
    ["a second time", "c2ln", [CORRUPTED, CORRUPTED], 2],
    ["when there are none", "", [CORRUPTED], 1],
    ["for another reason", "c2ln", [refuse("Bad value.")], 1],
  ] as const)("are not blamed %s", async (_, signature, reasons, calls) => {
    const { sent, answer } = provider(...reasons);
    const asking = askForgiving(callWith(signature), async (asked) => answer(asked), unsignedOrThrow);
    await expect(asking).rejects.toBe(reasons.at(-1));
    expect(sent).toHaveLength(calls);
  });

  it("are not blamed once the stream has begun", async () => {
    let calls = 0;
    const said: string[] = [];
    const asking = streamed(
      callWith("c2ln"),
      async (_, emit) => {
        calls++;
        await emit([sayChunk("first")]);
        throw CORRUPTED;
      },
      said,
    );
    await expect(asking).rejects.toBe(CORRUPTED);
    expect({ calls, said }).toEqual({ calls: 1, said: ["first"] });
  });
});

it("a conversation is signed when its body says so, not when its words do", () => {
  const unsigned = translate({ messages: [ask('"thoughtSignature":"c2ln"')] });
  expect(isSigned({ ...callWith(""), translation: unsigned })).toBe(false);
  expect(isSigned(callWith("c2ln"))).toBe(true);
});
