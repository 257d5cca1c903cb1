import type { Model } from "../../gen/parley/console/v1/model_pb.js";

/** Columns by which models are sorted. */
export type SortColumn = "name" | "context" | "input" | "output" | "latency" | "errors";

export interface Sorting {
  readonly column: SortColumn;
  readonly isDescending: boolean;
}

/** The value of a model in each column; undefined comes last in both directions. */
const VALUES: Readonly<Record<SortColumn, (model: Model) => string | number | bigint | undefined>> = {
  name: ({ id }) => id.toLowerCase(),
  context: ({ contextWindow, targets }) => (targets.length > 0 ? undefined : contextWindow),
  input: ({ price }) => price?.inputMicroUsdPerMtok,
  output: ({ price }) => price?.outputMicroUsdPerMtok,
  latency: ({ firstContent }) =>
    firstContent === undefined || firstContent.count === 0n ? undefined : firstContent.p50Ms,
  errors: ({ attempts, failures }) => (attempts === 0n ? undefined : Number(failures) / Number(attempts)),
};

/** The models in an order; without one in that of the configuration. */
export function sortModels(models: readonly Model[], sorting: Sorting | undefined): readonly Model[] {
  if (sorting === undefined) return models;
  const valueOf = VALUES[sorting.column];
  const sign = sorting.isDescending ? -1 : 1;
  return models.toSorted((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return a === b ? 0 : a < b ? -sign : sign;
  });
}

/** The order after a click on a column: ascending, descending, that of the configuration. */
export function nextSorting(sorting: Sorting | undefined, column: SortColumn): Sorting | undefined {
  if (sorting?.column !== column) return { column, isDescending: false };
  return sorting.isDescending ? undefined : { column, isDescending: true };
}
