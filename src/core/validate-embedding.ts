import { type EmbeddingInput, type EmbeddingRequest, EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { labelViolations } from "./labels.ts";
import { MAX_INT32, Violations } from "./validate.ts";

/** Limit of inputs per request. */
export const MAX_INPUTS = 2_048;

/**
 * Checks the meaning of an embedding request, for all inbound protocols. Throws `invalid_request` with every invalid field.
 */
export function validateEmbedding({ inputs, dimensions, task, requiredLabels }: EmbeddingRequest): void {
  const wrong = new Violations();
  if (inputs.length === 0) wrong.add("inputs", "must hold at least one input");
  if (inputs.length > MAX_INPUTS) wrong.add("inputs", `must hold at most ${MAX_INPUTS} inputs`);
  else for (let at = 0; at < inputs.length && !wrong.full; at++) checkInput(inputs[at]!, at, wrong);
  if (inputs.length > 0 && inputs.every(isOfLaterVersion))
    wrong.add("inputs", "must hold an input of a kind that this version knows");
  wrong.range("dimensions", dimensions, [1, MAX_INT32]);
  if (EmbeddingTask[task] === undefined) wrong.add("task", "is not a task");
  for (const { field, description } of labelViolations(requiredLabels)) wrong.add(field, description);
  wrong.throwIfAny();
}

/** Whether an input has a kind of a later version of the contract. */
export function isOfLaterVersion({ kind, $unknown }: EmbeddingInput): boolean {
  return kind.case === undefined && $unknown !== undefined;
}

function checkInput(input: EmbeddingInput, at: number, wrong: Violations): void {
  if (isOfLaterVersion(input)) return;
  const { kind } = input;
  if (kind.case === undefined) wrong.add(`inputs[${at}]`, "must have content, such as a text");
  else if (kind.value === "") wrong.add(`inputs[${at}]`, "must not be empty");
}

/** The texts of valid inputs, without those of a later version. */
export function textsOf(inputs: readonly EmbeddingInput[]): string[] {
  return inputs.flatMap(({ kind }) => (kind.case === "text" ? [kind.value] : []));
}
