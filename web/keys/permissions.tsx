import { useState } from "react";
import { type Key } from "../../gen/parley/console/v1/key_pb.js";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { CheckField, FieldGroup } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { CAPABILITY_NAMES } from "./capabilities.ts";
import { ModelSelection } from "./model-selection.tsx";

interface PermissionsProps {
  readonly models: readonly Model[];
  /** The edited key; undefined for a new one. */
  readonly current?: Key | undefined;
  readonly errors: (field: string) => string | undefined;
}

/** Fields for the models and capabilities of a key. */
export function Permissions({ models, current, errors }: PermissionsProps) {
  const [isAll, setAll] = useState(current?.models?.all ?? true);
  const modelError = errors("models") ?? errors("models.ids");
  const capabilityError = errors("capabilities");
  return (
    <Fold
      title="Permissions"
      summary={isAll ? "All models" : "Selected models"}
      isOpen={modelError !== undefined || capabilityError !== undefined}
    >
      <FieldGroup label="Models" error={modelError}>
        <label className="flex min-h-9 items-center gap-3 text-sm">
          <input
            type="radio"
            name="models"
            value="all"
            checked={isAll}
            onChange={() => setAll(true)}
            className="size-4.5"
          />
          All models, including future ones
        </label>
        <label className="flex min-h-9 items-center gap-3 text-sm">
          <input
            type="radio"
            name="models"
            value="some"
            checked={!isAll}
            onChange={() => setAll(false)}
            className="size-4.5"
          />
          Selected models only
        </label>
        {!isAll && <ModelSelection models={models} chosen={current?.models?.ids ?? []} />}
      </FieldGroup>
      <FieldGroup label="Capabilities" error={capabilityError}>
        {CAPABILITY_NAMES.map(([capability, name]) => (
          <CheckField
            key={capability}
            name="capability"
            value={capability}
            label={name}
            defaultChecked={current === undefined || current.capabilities.includes(capability)}
          />
        ))}
      </FieldGroup>
    </Fold>
  );
}
