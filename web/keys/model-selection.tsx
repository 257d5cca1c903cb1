import { useState } from "react";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Button } from "../components/button.tsx";
import { CheckField, TextField } from "../components/field.tsx";
import { formatCount } from "../format/number.ts";
import { hasWords } from "../format/search.ts";

interface ModelSelectionProps {
  readonly models: readonly Pick<Model, "id" | "provider">[];
  /** Models of the edited key. */
  readonly chosen: readonly string[];
}

/** Number of models above which there is a search. */
const MANY = 12;
/** Number of models listed at once. */
const LISTED = 60;

/** Checkboxes of the models of a key, as the field `model` of the form. Many of them are searched by name and provider. */
export function ModelSelection({ models, chosen }: ModelSelectionProps) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(() => new Set(chosen));
  const [searchText, setSearchText] = useState("");
  const found = models.filter(({ id, provider }) => hasWords(`${id} ${provider}`, searchText));
  const count = models.filter(({ id }) => selected.has(id)).length;
  const change = (ids: readonly string[], isOn: boolean): void => {
    const others = [...selected].filter((id) => !ids.includes(id));
    setSelected(new Set(isOn ? [...others, ...ids] : others));
  };
  const foundIds = found.map(({ id }) => id);
  return (
    <div className="ml-2 border-l border-line pl-5">
      {models
        .filter(({ id }) => selected.has(id))
        .map(({ id }) => (
          <input key={id} type="hidden" name="model" value={id} />
        ))}
      {models.length > MANY && (
        <div className="space-y-1 pb-2">
          <TextField
            label="Find a model"
            type="search"
            autoComplete="off"
            value={searchText}
            onChange={(event) => setSearchText(event.target.value)}
            // Enter would submit the form around it.
            onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
          />
          <div className="-ml-3 flex flex-wrap items-center gap-x-1">
            <Button look="quiet" size="small" onClick={() => change(foundIds, true)}>
              Select {searchText.trim() === "" ? "all" : `these ${formatCount(found.length)}`}
            </Button>
            <Button look="quiet" size="small" onClick={() => change(foundIds, false)}>
              Clear {searchText.trim() === "" ? "all" : "these"}
            </Button>
            <p role="status" className="px-3 text-sm text-muted">
              {formatCount(count)} of {formatCount(models.length)} selected
            </p>
          </div>
        </div>
      )}
      <div className={models.length > MANY ? "max-h-72 overflow-y-auto" : ""}>
        {found.slice(0, LISTED).map(({ id }) => (
          <CheckField
            key={id}
            value={id}
            label={id}
            checked={selected.has(id)}
            onChange={(event) => change([id], event.target.checked)}
          />
        ))}
        {found.length === 0 && models.length > 0 && <p className="py-2 text-sm text-muted">No model matches.</p>}
        {found.length > LISTED && (
          <p className="py-2 text-sm text-muted">{formatCount(found.length - LISTED)} more: search for them.</p>
        )}
      </div>
    </div>
  );
}
