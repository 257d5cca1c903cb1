import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { Button } from "../components/button.tsx";
import { CheckField, SelectField, TextAreaField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { Fallbacks } from "./fallbacks.tsx";
import { useFieldErrors } from "./field-errors.ts";
import { Parameters } from "./parameters.tsx";
import { TOOLS_EXAMPLE } from "./tools.ts";
import { useWorkspace, workspace } from "./workspace.ts";

interface SettingsProps {
  readonly keys: readonly Key[];
  readonly current: Key;
  /** Those that the key may use. */
  readonly models: readonly ModelSetting[];
  readonly model: ModelSetting | undefined;
}

/** As whom, of which model and how. */
export function Settings({ keys, current, models, model }: SettingsProps) {
  const draft = useWorkspace((state) => state.draft);
  const errors = useFieldErrors();
  return (
    <section aria-label="Settings" className="space-y-4">
      <div className="space-y-4 rounded-xl border border-line bg-surface p-4">
        <SelectField
          label="Key"
          value={current.id}
          error={errors("key_id")}
          hint={<code className="font-mono">{current.display}</code>}
          onChange={(event) => workspace.draft({ keyId: event.target.value })}
        >
          {keys.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </SelectField>
        <SelectField
          label="Model"
          value={model?.id}
          error={errors("model")}
          hint={models.length === 0 ? "This key may use none of the models there are." : undefined}
          onChange={(event) => workspace.draft({ model: event.target.value })}
        >
          {models.map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </SelectField>
        {model?.images === true && (
          <CheckField
            label="The answer may hold images"
            checked={draft.parameters.modalities === "image"}
            onChange={(event) => workspace.parameter("modalities", event.target.checked ? "image" : "")}
          />
        )}
        {errors("modalities") !== undefined && <p className="text-sm text-danger">{errors("modalities")}</p>}
      </div>
      <Fold title="System message" summary={draft.system === "" ? "None" : "Set"} isOpen={false}>
        <TextAreaField
          label="What the model should know and be"
          rows={5}
          value={draft.system}
          onChange={(event) => workspace.draft({ system: event.target.value })}
        />
      </Fold>
      <Parameters errors={errors} />
      <Tools error={errors("tools") ?? errors("tool_choice")} />
      <Fallbacks models={models} model={model?.id} error={errors("fallback_models")} />
    </section>
  );
}

function Tools({ error }: { readonly error: string | undefined }) {
  const tools = useWorkspace((state) => state.draft.tools);
  return (
    <Fold title="Tools" summary={tools.trim() === "" ? "None" : "Set"} isOpen={error !== undefined}>
      <TextAreaField
        label="Functions, as JSON"
        hint="As OpenAI’s clients write them."
        rows={10}
        spellCheck={false}
        className="font-mono text-[0.8125rem]!"
        value={tools}
        error={error}
        onChange={(event) => workspace.draft({ tools: event.target.value })}
      />
      {tools.trim() === "" && (
        <Button look="quiet" size="small" onClick={() => workspace.draft({ tools: TOOLS_EXAMPLE })}>
          Insert an example
        </Button>
      )}
    </Fold>
  );
}
