import { type EmbeddingInput, type EmbeddingRequest, EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { MAX_INT32, Violations } from "./validate.ts";

/** Limit of inputs per request. */
export const MAX_INPUTS = 2_048;

/**
 * Checks the meaning of an embedding request, for all inbound protocols. Throws `invalid_request` with every invalid field.
 */
export function validateEmbedding({ inputs, dimensions, task }: EmbeddingRequest): void {
  const wrong = new Violations();
  if (inputs.length === 0) wrong.add("inputs", "must hold at least one input");
  if (inputs.length > MAX_INPUTS) wrong.add("inputs", `must hold at most ${MAX_INPUTS} inputs`);
  else for (let at = 0; at < inputs.length && !wrong.full; at++) checkInput(inputs[at]!, at, wrong);
  wrong.range("dimensions", dimensions, [1, MAX_INT32]);
  if (EmbeddingTask[task] === undefined) wrong.add("task", "is not a task");
  wrong.throwIfAny();
}

function checkInput({ kind }: EmbeddingInput, at: number, wrong: Violations): void {
  if (kind.case === undefined) wrong.add(`inputs[${at}]`, "must have content, such as a text");
  else if (kind.value === "") wrong.add(`inputs[${at}]`, "must not be empty");
}

/** The texts of valid inputs. */
export function textsOf(inputs: readonly EmbeddingInput[]): string[] {
  return inputs.flatMap(({ kind }) => (kind.case === "text" ? [kind.value] : []));
}
