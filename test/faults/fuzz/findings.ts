import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { figure } from "../support/figures.ts";
import { seed } from "../../support/scale.ts";

/** Maximum number of described findings; one error is often found thousands of times. */
const MAX_DESCRIBED = 10;

const PROGRESS_EVERY = 50_000;

/** Inputs that found an error: each is written to a file for the corpus, and described with its seed. */
export class Findings {
  readonly #kind: string;
  #count = 0;
  #folder: string | undefined;
  #described = 0;

  constructor(kind: string) {
    this.#kind = kind;
  }

  get count(): number {
    return this.#count;
  }

  /** Records the flaw of an input, if there is one. */
  note(input: { readonly name: string | number; readonly bytes: Buffer }, flaw: string | undefined): void {
    if (flaw === undefined) return;
    this.#count += 1;
    if (this.#described >= MAX_DESCRIBED) return;
    this.#described += 1;
    this.#folder ??= mkdtempSync(join(tmpdir(), `parley-fuzz-${this.#kind}-`));
    const file = join(this.#folder, String(input.name));
    writeFileSync(file, input.bytes);
    console.error(`input ${input.name}, seed ${seed()}: ${flaw.slice(0, 2000)}\n  kept in ${file}`);
  }

  /** Prints the progress of a long run at intervals. */
  progress(index: number): void {
    if (index > 0 && index % PROGRESS_EVERY === 0) console.log(`${this.#kind}: ${index} done, ${this.#count} findings`);
  }

  /** Prints the number of findings. Throws if there are any. */
  conclude(name: string): void {
    figure({ name, value: this.#count, unit: "", atMost: 0 });
  }
}
