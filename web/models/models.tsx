import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { modelsQuery } from "../api/models.ts";
import { Unavailable } from "../components/alert.tsx";
import { SearchField, SelectField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { SortField } from "../components/sort-field.tsx";
import { sortRows, useSorting } from "../components/sorting.ts";
import { Table } from "../components/table.tsx";
import { useFind } from "../components/use-find.ts";
import { healthOf } from "../format/health.ts";
import { hasWords } from "../format/search.ts";
import { ABILITIES } from "./abilities.ts";
import { MODEL_COLUMNS, ModelHead, ModelRow } from "./model-row.tsx";
import { SORT_VALUES } from "./sorting.ts";

/** Number of models from which search and filter are shown. */
const MANY = 4;
/** Number of models shown initially, and added per click on "Show more". */
const SHOWN = 60;

/** Interval between refreshes of the health data while the page is visible. */
const REFRESH_MS = 15_000;

/** Page of the available models, with capabilities, prices and health. */
export default function Models() {
  const models = useQuery({ ...modelsQuery, refetchInterval: REFRESH_MS, refetchOnMount: "always" });
  return (
    <Page isWide title="Models" description="Available models, prices and current health.">
      {models.isPending ? (
        <Loading what="the models" />
      ) : models.isLoadingError ? (
        <Unavailable error={models.error} onRetry={() => void models.refetch()} />
      ) : models.data.length === 0 ? (
        <Empty title="No models">No models are configured.</Empty>
      ) : (
        <ModelList models={models.data} />
      )}
    </Page>
  );
}

function ModelList({ models }: { readonly models: readonly Model[] }) {
  const [searchText, setSearchText] = useFind();
  const [filter, setFilter] = useState("");
  const has = FILTERS.find(([name]) => name === filter)?.[1] ?? (() => true);
  const found = models.filter(
    (model) => has(model) && hasWords(`${model.id} ${model.provider} ${model.description}`, searchText),
  );
  const [sorting, setSorting] = useSorting(MODEL_COLUMNS);
  const shown = useShown(sortRows(found, SORT_VALUES, sorting), SHOWN);
  return (
    <>
      {models.length >= MANY && (
        <div className="mb-4 grid gap-3 sm:grid-cols-[20rem_12rem_17rem]">
          <SearchField label="Find a model" value={searchText} onChange={setSearchText} />
          <SelectField label="Show" isLabelHidden value={filter} onChange={(event) => setFilter(event.target.value)}>
            <option value="">All</option>
            {FILTERS.filter(([, each]) => models.some(each)).map(([name]) => (
              <option key={name}>{name}</option>
            ))}
          </SelectField>
          <div className="2xl:hidden">
            <SortField columns={MODEL_COLUMNS} sorting={sorting} onSort={setSorting} usual="Configured order" />
          </div>
        </div>
      )}
      <p role="status" className={found.length === 0 ? "py-8 text-muted" : "sr-only"}>
        {found.length === 0 ? "No models match." : `${found.length} of ${models.length} models`}
      </p>
      {found.length > 0 && (
        <Table label="Models" head={<ModelHead sorting={sorting} onSort={setSorting} />}>
          {shown.visible.map((model) => (
            <ModelRow key={model.id} model={model} />
          ))}
        </Table>
      )}
      <More {...shown} />
    </>
  );
}

const FILTERS: typeof ABILITIES = [
  ...ABILITIES,
  ["Healthy", (model) => healthOf(model) === "healthy"],
  ["Unhealthy", (model) => healthOf(model) !== "healthy"],
];
