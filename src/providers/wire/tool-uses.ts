import type { FeeUnit, ToolUses } from "../../core/fees.ts";

/** Collects the uses of the provider's own tools that a request may cause. */
export class ToolUsesBuilder {
  readonly #uses: { -readonly [Key in keyof ToolUses]: ToolUses[Key] } = {};
  #isEmpty = true;

  /** Adds a tool that is used at most `most` times; Infinity: without a bound. */
  add(unit: FeeUnit, most: number): void {
    this.#uses[unit] = (this.#uses[unit] ?? 0) + most;
    this.#isEmpty = false;
  }

  /** Adds a tool without a bound whose uses the provider may not count. */
  addUncounted(unit: "webSearches"): void {
    this.add(unit, Infinity);
    this.#uses.uncounted = true;
  }

  /** Adds a tool with unknown fees; of several, the first is kept. */
  addUnknown(name: string): void {
    this.#uses.unknown ??= name.slice(0, MAX_NAME_CHARS).toWellFormed();
    this.#isEmpty = false;
  }

  build(): ToolUses | undefined {
    return this.#isEmpty ? undefined : this.#uses;
  }
}

/** Characters of a tool's name that an error repeats. */
const MAX_NAME_CHARS = 64;
