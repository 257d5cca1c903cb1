import { type Act, says, type ScriptedCall } from "../../support/scripted-upstream.ts";

/** Calls that reached an upstream and are kept waiting, all at once let go. */
export class HeldCalls {
  readonly #held: ScriptedCall[] = [];

  /** What the upstream does with each call. */
  readonly act: Act = (call) => void this.#held.push(call);

  get count(): number {
    return this.#held.length;
  }

  /** Answers all of them; answers how many there were. */
  release(): number {
    const calls = this.#held.splice(0);
    const answer = says("done");
    for (const call of calls) answer(call);
    return calls.length;
  }
}
