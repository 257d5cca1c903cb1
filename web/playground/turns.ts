import { type Answer, withEditedText } from "./answer.ts";

/** An attached image. */
export interface Picture {
  /** Unique within the list. */
  readonly id: number;
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}

/** A user message. */
interface UserTurn {
  readonly id: number;
  readonly role: "user";
  readonly text: string;
  readonly pictures: readonly Picture[];
}

/** An answer of the model. */
interface AnswerTurn {
  readonly id: number;
  readonly role: "assistant";
  readonly answer: Answer;
}

/** The result of a tool call, entered by hand. */
export interface ResultTurn {
  readonly id: number;
  readonly role: "tool";
  readonly callId: string;
  readonly name: string;
  readonly text: string;
}

export type Turn = UserTurn | AnswerTurn | ResultTurn;

/** Returns the calls of the last answer that have no results yet. */
export function openCalls(turns: readonly Turn[]): Answer["calls"] {
  const last = turns.at(-1);
  return last?.role === "assistant" ? last.answer.calls : [];
}

/** Removes a turn, and the results of its calls, which are invalid without it. */
export function withoutTurn(turns: readonly Turn[], id: number): readonly Turn[] {
  const removed = turns.find((turn) => turn.id === id);
  const calls = new Set(removed?.role === "assistant" ? removed.answer.calls.map((call) => call.id) : []);
  return turns.filter((turn) => turn.id !== id && !(turn.role === "tool" && calls.has(turn.callId)));
}

/** Replaces the text of a turn. */
export function withText(turns: readonly Turn[], id: number, text: string): readonly Turn[] {
  return turns.map((turn) => {
    if (turn.id !== id) return turn;
    if (turn.role !== "assistant") return { ...turn, text };
    return { ...turn, answer: withEditedText(turn.answer, text) };
  });
}
