import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { CheckField, TextAreaField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { CompareField } from "./compare-field.tsx";
import { Fallbacks } from "./fallbacks.tsx";
import { useFieldErrors } from "./field-errors.ts";
import { Parameters } from "./parameters.tsx";
import { Presets } from "./presets.tsx";
import { RESULTS_EXAMPLE, TOOLS_EXAMPLE } from "./tools.ts";
import { useWorkspace, workspace } from "./workspace.ts";

interface SettingsProps {
  readonly keys: readonly Key[];
  readonly current: Key;
  /** Models that the key may use. */
  readonly models: readonly ModelSetting[];
  readonly model: ModelSetting | undefined;
  /** Reason why the model differs from the selected one. */
  readonly notice: string | undefined;
  readonly onModel: (id: string) => void;
  readonly onCompare: (models: readonly string[]) => void;
}

/** Fields for key, model, parameters, tools and fallbacks. */
export function Settings({ keys, current, models, model, notice, onModel, onCompare }: SettingsProps) {
  const draft = useWorkspace((state) => state.draft);
  const errors = useFieldErrors();
  return (
    <section aria-label="Settings" className="space-y-4">
      <div className="space-y-4 rounded-xl border border-line bg-surface p-4">
        <Choose
          label="Key"
          value={current.id}
          error={errors("key_id")}
          hint={<code className="font-mono">{current.display}</code>}
          choices={keys.map(({ id, name }) => [id, name])}
          onChange={(id) => workspace.draft({ chosenKeyId: id })}
        />
        <div>
          <Choose
            label="Model"
            value={model?.id ?? ""}
            error={errors("model")}
            hint={models.length === 0 ? "This key has no usable models." : undefined}
            choices={models.map(({ id }) => [id, id])}
            onChange={onModel}
          />
          <p role="status" className={notice === undefined ? "sr-only" : "mt-1.5 text-sm wrap-anywhere text-warn"}>
            {notice}
          </p>
        </div>
        <CompareField models={models} model={model?.id} onCompare={onCompare} />
        {model?.images === true && (
          <CheckField
            label="Generate images"
            checked={draft.parameters.modalities === "image"}
            onChange={(event) => workspace.parameter("modalities", event.target.checked ? "image" : "")}
          />
        )}
        {errors("modalities") !== undefined && <p className="text-sm text-danger">{errors("modalities")}</p>}
      </div>
      <Presets onModel={onModel} />
      <Fold title="System message" summary={draft.system === "" ? "None" : "Set"} isOpen={false}>
        <TextAreaField
          label="Instructions for the model"
          rows={5}
          value={draft.system}
          onChange={(event) => workspace.draft({ system: event.target.value })}
        />
      </Fold>
      <Parameters errors={errors} />
      <Tools error={errors("tools") ?? errors("tool_choice")} resultsError={errors("results")} />
      <Fallbacks models={models} model={model?.id} error={errors("fallback_models")} />
    </section>
  );
}

interface ToolsProps {
  readonly error: string | undefined;
  readonly resultsError: string | undefined;
}

function Tools({ error, resultsError }: ToolsProps) {
  const tools = useWorkspace((state) => state.draft.tools);
  const results = useWorkspace((state) => state.draft.results);
  return (
    <Fold title="Tools" summary={tools.trim() === "" ? "None" : "Set"} isOpen={(error ?? resultsError) !== undefined}>
      <TextAreaField
        label="Functions (JSON)"
        hint="OpenAI tools format."
        rows={10}
        spellCheck={false}
        className="font-mono text-[0.8125rem]!"
        value={tools}
        error={error}
        onChange={(event) => workspace.draft({ tools: event.target.value })}
      />
      {tools.trim() === "" ? (
        <Button look="quiet" size="small" onClick={() => workspace.draft({ tools: TOOLS_EXAMPLE })}>
          Insert example
        </Button>
      ) : (
        <TextAreaField
          label="Simulated results (JSON)"
          hint="By function name, sent by themselves. Without one you enter the result of a call."
          placeholder={RESULTS_EXAMPLE}
          rows={6}
          spellCheck={false}
          className="font-mono text-[0.8125rem]!"
          value={results}
          error={resultsError}
          onChange={(event) => workspace.draft({ results: event.target.value })}
        />
      )}
    </Fold>
  );
}
