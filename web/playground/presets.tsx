import { type FormEvent, useState } from "react";
import { Trash2 } from "lucide-react";
import { useAccount } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { notify } from "../components/notify.ts";
import { MAX_PRESETS, type Preset, readPresets, storePresets, withPreset } from "./preset-store.ts";
import { workspace } from "./workspace.ts";

/** Named settings, which this browser keeps for the account. */
export function Presets({ onModel }: { readonly onModel: (id: string) => void }) {
  const account = useAccount();
  const [presets, setPresets] = useState(() => readPresets(account.id));
  const [error, setError] = useState<string>();
  const store = (next: readonly Preset[], text: string): boolean => {
    const isStored = storePresets(account.id, next);
    setError(isStored ? undefined : "This browser cannot store it: there is no room, or storage is turned off.");
    if (!isStored) return false;
    setPresets(next);
    notify(text);
    return true;
  };
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const written = new FormData(form).get("preset");
    const name = typeof written === "string" ? written.trim() : "";
    if (name === "") return setError("Enter a name.");
    const { system, parameters, tools, results, fallbacks, model } = workspace.state.draft;
    const next = withPreset(presets, { name, system, parameters, tools, results, fallbacks, model });
    if (next.length > MAX_PRESETS) return setError(`There are ${MAX_PRESETS} presets already: remove one first.`);
    if (store(next, `Preset ${name} saved.`)) form.reset();
  };
  const apply = ({ name, model, ...settings }: Preset): void => {
    workspace.draft(settings);
    if (model !== "") onModel(model);
    notify(`Preset ${name} applied.`);
  };
  return (
    <Fold title="Presets" summary={String(presets.length || "None")} isOpen={error !== undefined}>
      {presets.length > 0 && (
        <ul aria-label="Presets" className="-my-2">
          {presets.map((preset) => (
            <li key={preset.name} className="flex items-center justify-between gap-2">
              <Button look="quiet" size="small" className="-ml-3 min-w-0 text-left" onClick={() => apply(preset)}>
                <bdi className="wrap-anywhere">{preset.name}</bdi>
              </Button>
              <IconButton
                name={`Remove the preset ${preset.name}`}
                Icon={Trash2}
                onClick={() =>
                  store(
                    presets.filter((other) => other !== preset),
                    `Preset ${preset.name} removed.`,
                  )
                }
              />
            </li>
          ))}
        </ul>
      )}
      <form noValidate onSubmit={save} className="space-y-3">
        <TextField
          label="Name of a preset"
          name="preset"
          maxLength={60}
          autoComplete="off"
          error={error}
          hint="Keeps model, system message, parameters, tools with results and fallback models in this browser."
        />
        <Button type="submit" look="secondary" size="small">
          Save preset
        </Button>
      </form>
    </Fold>
  );
}
