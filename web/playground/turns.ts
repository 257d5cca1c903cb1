import type { Answer } from "./answer.ts";

/** A picture that somebody attached. */
export interface Picture {
  /** Unlike that of those beside it. */
  readonly id: number;
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}

/** What a person says. */
export interface UserTurn {
  readonly id: number;
  readonly role: "user";
  readonly text: string;
  readonly pictures: readonly Picture[];
}

/** What a model said. */
export interface AnswerTurn {
  readonly id: number;
  readonly role: "assistant";
  readonly answer: Answer;
}

/** The result of a call, written by hand. */
export interface ResultTurn {
  readonly id: number;
  readonly role: "tool";
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export type Turn = UserTurn | AnswerTurn | ResultTurn;

/** The calls of the last answer that nobody has answered yet; empty when the conversation can simply go on. */
export function openCalls(turns: readonly Turn[]): Answer["calls"] {
  const last = turns.at(-1);
  return last?.role === "assistant" ? last.answer.calls : [];
}

/** The turns without this one, and without the results of its calls: they answer nothing without it. */
export function withoutTurn(turns: readonly Turn[], id: number): readonly Turn[] {
  const removed = turns.find((turn) => turn.id === id);
  const calls = new Set(removed?.role === "assistant" ? removed.answer.calls.map((call) => call.id) : []);
  return turns.filter((turn) => turn.id !== id && !(turn.role === "tool" && calls.has(turn.callId)));
}

/** The turns with another text in one of them. What proves a model's reasoning would not fit the new text, and goes. */
export function withText(turns: readonly Turn[], id: number, text: string): readonly Turn[] {
  return turns.map((turn) => {
    if (turn.id !== id) return turn;
    if (turn.role !== "assistant") return { ...turn, text };
    return { ...turn, answer: { ...turn.answer, text, blocks: [], signature: undefined } };
  });
}
