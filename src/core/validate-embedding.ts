import { type EmbeddingRequest, EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { MAX_INT32, Violations } from "./validate.ts";

/** Limit of texts per request. */
export const MAX_INPUTS = 2_048;

/**
 * Checks the meaning of an embedding request, for all inbound protocols. Throws `invalid_request` with every invalid field.
 */
export function validateEmbedding({ inputs, dimensions, task }: EmbeddingRequest): void {
  const wrong = new Violations();
  if (inputs.length === 0) wrong.add("inputs", "must hold at least one text");
  if (inputs.length > MAX_INPUTS) wrong.add("inputs", `must hold at most ${MAX_INPUTS} texts`);
  else
    for (let at = 0; at < inputs.length && !wrong.full; at++)
      if (inputs[at] === "") wrong.add(`inputs[${at}]`, "must not be empty");
  wrong.range("dimensions", dimensions, [1, MAX_INT32]);
  if (EmbeddingTask[task] === undefined) wrong.add("task", "is not a task");
  wrong.throwIfAny();
}
