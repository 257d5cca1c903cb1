import { useId, useState } from "react";
import { X } from "lucide-react";
import type { OfferedModel } from "../../gen/parley/console/v1/configuration_pb.js";
import { Button } from "../components/button.tsx";
import { CheckField, TextField } from "../components/field.tsx";
import { Segments } from "../components/segments.tsx";
import { ICON_BUTTON } from "../components/table.tsx";
import { hasWords } from "../format/search.ts";
import { formatShort } from "../format/number.ts";
import type { ChosenModel, Prices } from "./provider-draft.ts";

/** Offered models that are shown at once; others are found by search. */
const SHOWN = 50;

export type WhichModels = "all" | "chosen";

interface ModelChoiceProps {
  /** The provider's own list; undefined before it was asked for. */
  readonly offered: readonly OfferedModel[] | undefined;
  readonly which: WhichModels;
  readonly chosen: readonly ChosenModel[];
  /** Error of the chosen model with this index. */
  readonly errorOf: (index: number) => string | undefined;
  readonly onWhich: (which: WhichModels) => void;
  readonly onChoose: (chosen: readonly ChosenModel[]) => void;
}

/** Choice of a provider's models: all that it lists, or some with their prices. */
export function ModelChoice({ offered, which, chosen, errorOf, onWhich, onChoose }: ModelChoiceProps) {
  const heading = useId();
  const add = (name: string): void => {
    if (name === "" || chosen.some((each) => each.name === name)) return;
    onChoose([...chosen, { name, input: "", output: "", offered: offered?.find((each) => each.name === name) }]);
  };
  const remove = (name: string): void => onChoose(chosen.filter((each) => each.name !== name));
  const price = (name: string, prices: Partial<Prices>): void =>
    onChoose(chosen.map((each) => (each.name === name ? { ...each, ...prices } : each)));
  return (
    <section aria-labelledby={heading} className="space-y-4 border-t border-line pt-5">
      <h3 id={heading} className="text-base font-semibold">
        Models
      </h3>
      <Segments
        legend="Which models"
        choices={[
          ["chosen", "Choose models"],
          ["all", "All that it lists"],
        ]}
        value={which}
        onChange={onWhich}
      />
      {which === "all" ? (
        <p className="text-sm text-muted">
          All models of the provider’s own list that make completions, read again every 15 minutes.
        </p>
      ) : (
        <>
          {offered !== undefined && offered.length > 0 && (
            <Offered
              offered={offered}
              chosen={chosen}
              onToggle={(name, isChosen) => (isChosen ? add(name) : remove(name))}
            />
          )}
          <TypedModel label={offered === undefined ? "Model" : "Other model"} onAdd={add} />
          {chosen.length > 0 && (
            <ul aria-label="Chosen models" className="divide-y divide-line rounded-lg border border-line">
              {chosen.map((model, index) => (
                <Chosen
                  key={model.name}
                  model={model}
                  error={errorOf(index)}
                  onPrice={(prices) => price(model.name, prices)}
                  onRemove={() => remove(model.name)}
                />
              ))}
            </ul>
          )}
        </>
      )}
    </section>
  );
}

interface OfferedProps {
  readonly offered: readonly OfferedModel[];
  readonly chosen: readonly ChosenModel[];
  readonly onToggle: (name: string, isChosen: boolean) => void;
}

function Offered({ offered, chosen, onToggle }: OfferedProps) {
  const [searchText, setSearchText] = useState("");
  const found = offered.filter(({ name }) => hasWords(name, searchText));
  return (
    <div className="space-y-3">
      {offered.length > 10 && (
        <TextField
          label={`Find one of ${offered.length} models`}
          type="search"
          autoComplete="off"
          value={searchText}
          onChange={(event) => setSearchText(event.target.value)}
        />
      )}
      <fieldset className="max-h-60 overflow-y-auto rounded-lg border border-line px-4 py-1">
        <legend className="sr-only">Models that the provider lists</legend>
        {found.slice(0, SHOWN).map(({ name, contextWindow }) => (
          <CheckField
            key={name}
            label={contextWindow > 0 ? `${name} · ${formatShort(contextWindow)} tokens` : name}
            checked={chosen.some((each) => each.name === name)}
            onChange={(event) => onToggle(name, event.target.checked)}
          />
        ))}
        {found.length === 0 && <p className="py-2 text-sm text-muted">No model matches.</p>}
        {found.length > SHOWN && (
          <p className="py-2 text-sm text-muted">{found.length - SHOWN} more: search to find them.</p>
        )}
      </fieldset>
    </div>
  );
}

/** Field for the name of a model that is not listed. */
function TypedModel({ label, onAdd }: { readonly label: string; readonly onAdd: (name: string) => void }) {
  const [name, setName] = useState("");
  const add = (): void => {
    onAdd(name.trim());
    setName("");
  };
  return (
    <div className="flex items-end gap-3">
      <div className="min-w-0 flex-1">
        <TextField
          label={label}
          autoComplete="off"
          spellCheck={false}
          placeholder="The provider’s name of it"
          value={name}
          onChange={(event) => setName(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            add();
          }}
        />
      </div>
      <Button look="secondary" disabled={name.trim() === ""} onClick={add}>
        Add model
      </Button>
    </div>
  );
}

interface ChosenProps {
  readonly model: ChosenModel;
  readonly error: string | undefined;
  readonly onPrice: (prices: Partial<Prices>) => void;
  readonly onRemove: () => void;
}

function Chosen({ model: { name, input, output }, error, onPrice, onRemove }: ChosenProps) {
  return (
    <li className="p-4">
      <div className="flex items-center justify-between gap-3">
        <code className="font-mono text-sm wrap-anywhere">{name}</code>
        <button
          type="button"
          aria-label={`Do not add ${name}`}
          title={`Do not add ${name}`}
          className={ICON_BUTTON}
          onClick={onRemove}
        >
          <X aria-hidden className="size-4" />
        </button>
      </div>
      <fieldset className="mt-2 grid grid-cols-2 gap-4">
        <legend className="sr-only">Prices of {name} in USD per million tokens</legend>
        <TextField
          label="Input, USD/M tokens"
          inputMode="decimal"
          autoComplete="off"
          placeholder="List price"
          value={input}
          onChange={(event) => onPrice({ input: event.target.value })}
        />
        <TextField
          label="Output, USD/M tokens"
          inputMode="decimal"
          autoComplete="off"
          placeholder="List price"
          value={output}
          onChange={(event) => onPrice({ output: event.target.value })}
        />
      </fieldset>
      {error !== undefined && <p className="mt-2 text-sm whitespace-pre-line text-danger">{error}</p>}
    </li>
  );
}
