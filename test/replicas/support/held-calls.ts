import { type Act, says, type ScriptedCall } from "../../support/scripted-upstream.ts";

/** Upstream calls whose responses are held until `release`. */
export class HeldCalls {
  readonly #held: ScriptedCall[] = [];

  /** Handles an upstream call. */
  readonly act: Act = (call) => void this.#held.push(call);

  get count(): number {
    return this.#held.length;
  }

  /** Responds to all held calls; returns their number. */
  release(): number {
    const calls = this.#held.splice(0);
    const answer = says("done");
    for (const call of calls) answer(call);
    return calls.length;
  }
}
