import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { type Completion, CompletionSchema, FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { ImageSchema, type Message, type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { AnswerBuilder } from "../../src/core/answer-builder.ts";
import { finishChunk, toPart } from "../../src/core/chunks.ts";
import { chunksOfPart } from "../support/to-chunks.ts";
import { anyCharacter } from "../support/any-character.ts";

/** The result of a call: a JSON object, which every format can say. */
export interface Result {
  readonly toolCallId: string;
  readonly name: string;
  readonly response: Readonly<Record<string, string>>;
}

/** One turn of a conversation, as a client keeps it. */
export type Turn =
  | { readonly by: "user"; readonly parts: readonly Part[] }
  /** An answer, and the results of its calls. */
  | { readonly by: "model"; readonly parts: readonly Part[]; readonly results: readonly Result[] };

/** A conversation that every format can say: instructions, which may be empty, and turns. */
export interface History {
  readonly instructions: string;
  readonly turns: readonly Turn[];
}

const words = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 12 }).filter((text) => text.isWellFormed());
const state = fc.oneof(
  fc.constant(""),
  fc.uint8Array({ minLength: 3, maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64")),
);
const object = fc.dictionary(fc.stringMatching(/^[a-z]{1,4}$/), words, { maxKeys: 3 });

const PNG = Buffer.from("89504e470d0a1a0a", "hex");
const picture = fc.uint8Array({ maxLength: 9 }).map((bytes) => {
  const data = Buffer.concat([PNG, bytes]);
  return toPart({
    case: "image",
    value: create(ImageSchema, { source: { case: "data", value: data }, mediaType: "image/png" }),
  });
});
const text = words.map((value) => toPart({ case: "text", value }));

const userTurn: fc.Arbitrary<Turn> = fc
  .array(fc.oneof(text, picture), { minLength: 1, maxLength: 3 })
  .map((parts) => ({ by: "user", parts }));

/** What a model says: with what proves it, because nothing else of reasoning is sent back in every format. */
const answerPart: fc.Arbitrary<Part | { readonly name: string; readonly args: object; readonly signature: string }> =
  fc.oneof(
    fc
      .record({ value: words, signature: state })
      .map(({ value, signature }) => toPart({ case: "text", value }, signature)),
    fc
      .record({ value: words, signature: state.filter((signature) => signature !== "") })
      .map(({ value, signature }) =>
        toPart(
          { case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: value, redacted: "" } },
          signature,
        ),
      ),
    fc.record({ name: fc.constantFrom("find", "get_weather"), args: object, signature: state }),
  );

/** A model's turn without the IDs of its calls, which are unique in a conversation. */
const modelTurn = fc.record({
  by: fc.constant("model" as const),
  parts: fc.array(answerPart, { minLength: 1, maxLength: 5 }),
  responses: fc.array(object, { minLength: 5, maxLength: 5 }),
  isReversed: fc.boolean(),
});

type ModelPlan = typeof modelTurn extends fc.Arbitrary<infer T> ? T : never;

/** Any conversation. Turns of the model stand between those of the user, or follow the results of calls. */
export const histories: fc.Arbitrary<History> = fc
  .record({
    instructions: fc.oneof(fc.constant(""), words),
    rounds: fc.array(fc.tuple(userTurn, modelTurn), { maxLength: 3 }),
    last: userTurn,
  })
  .map(({ instructions, rounds, last }) => {
    const turns = rounds.flatMap(([user, plan], round): Turn[] => [user, toTurn(plan, round)]);
    return { instructions, turns: [...turns, last].map(withNumbers) };
  });

/** The turn with a distinct text in each part. */
function withNumbers(turn: Turn, number: number): Turn {
  const parts = turn.parts.map((part, at) =>
    part.kind.case === "text"
      ? toPart({ case: "text", value: `${number}.${at}: ${part.kind.value}` }, part.signature)
      : part,
  );
  return { ...turn, parts };
}

function toTurn({ parts: planned, responses, isReversed }: ModelPlan, round: number): Turn {
  const results: Result[] = [];
  const parts = planned.map((part, at): Part => {
    if (!("name" in part)) return part;
    const id = `call_${round}_${at}`;
    results.push({ toolCallId: id, name: part.name, response: responses[at]! });
    const input = { case: "argumentsJson", value: JSON.stringify(part.args) } as const;
    return toPart(
      { case: "toolCall", value: { $typeName: "parley.v1.ToolCall", id, name: part.name, input } },
      part.signature,
    );
  });
  return { by: "model", parts, results: isReversed ? results.toReversed() : results };
}

/** An answer of these parts. */
export function completionOf(parts: readonly Part[]): Completion {
  const builder = new AnswerBuilder();
  const chunks = parts.flatMap((part, at) => chunksOfPart(part, 0, at));
  for (const chunk of [...chunks, finishChunk(0, { reason: FinishReason.STOP, native: "" })]) builder.add(chunk);
  const { choices } = builder.build();
  return create(CompletionSchema, { id: "chatcmpl-1", model: "m", choices });
}

/** The messages that a history is in the contract. */
export function messagesOf({ instructions, turns }: History): Pick<Message, "role" | "parts">[] {
  const spoken = turns.flatMap((turn): Pick<Message, "role" | "parts">[] => {
    if (turn.by === "user") return [{ role: Role.USER, parts: [...turn.parts] }];
    const answer = { role: Role.ASSISTANT, parts: [...turn.parts] };
    return turn.results.length === 0 ? [answer] : [answer, { role: Role.TOOL, parts: turn.results.map(toResultPart) }];
  });
  if (instructions === "") return spoken;
  return [{ role: Role.SYSTEM, parts: [toPart({ case: "text", value: instructions })] }, ...spoken];
}

function toResultPart({ toolCallId, response }: Result): Part {
  const parts = [toPart({ case: "text", value: JSON.stringify(response) })];
  return toPart({
    case: "toolResult",
    value: { $typeName: "parley.v1.ToolResult", toolCallId, parts, isError: false },
  });
}

/** Messages in short: neighbouring texts are one, as far as no signature is between them. */
export function shortened(messages: readonly Pick<Message, "role" | "parts">[]): unknown[] {
  return messages.map(({ role, parts }) => ({ role: Role[role], parts: joined(parts).map(inShort) }));
}

function joined(parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (part.kind.case === "text" && last?.kind.case === "text" && last.signature === "")
      out[out.length - 1] = toPart({ case: "text", value: last.kind.value + part.kind.value }, part.signature);
    else out.push(part);
  }
  return out;
}

function inShort({ kind, signature }: Part): unknown {
  const shown = { kind: kind.case, ...(signature !== "" && { signature }) };
  switch (kind.case) {
    case "image":
      return { ...shown, value: Buffer.from(kind.value.source.value as Uint8Array).toString("hex") };
    case "toolResult":
      return { ...shown, id: kind.value.toolCallId, parts: kind.value.parts.map(inShort) };
    default:
      return { ...shown, value: kind.value };
  }
}
