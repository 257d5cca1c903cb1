import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import type { SortValues } from "../components/sorting.ts";

/** Columns by which models are sorted. */
export type SortColumn = "name" | "provider" | "context" | "input" | "output" | "latency" | "errors";

/** The value of a model in each column. */
export const SORT_VALUES: SortValues<Model, SortColumn> = {
  name: ({ id }) => id.toLowerCase(),
  provider: ({ provider }) => provider.toLowerCase() || undefined,
  context: ({ contextWindow, targets }) => (targets.length > 0 ? undefined : contextWindow),
  input: ({ price }) => price?.inputMicroUsdPerMtok,
  output: ({ price }) => price?.outputMicroUsdPerMtok,
  latency: ({ firstContent }) =>
    firstContent === undefined || firstContent.count === 0n ? undefined : firstContent.p50Ms,
  errors: ({ attempts, failures }) => (attempts === 0n ? undefined : Number(failures) / Number(attempts)),
};
