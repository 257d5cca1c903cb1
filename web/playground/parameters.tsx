import { Button } from "../components/button.tsx";
import { CheckField, SelectField, TextAreaField, TextField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { CHOICES, countChanged, NUMBERS, type ParameterField } from "./draft.ts";
import { useWorkspace, workspace } from "./workspace.ts";

const SCHEMA = "response_format.json_schema.schema_json";

interface ParametersProps {
  readonly errors: (field: string) => string | undefined;
}

/** Fields for the generation parameters. Empty fields use the model's defaults. */
export function Parameters({ errors }: ParametersProps) {
  const draft = useWorkspace((state) => state.draft);
  const { parameters } = draft;
  const changed = countChanged(draft);
  const fieldProps = (field: ParameterField) => ({
    name: field,
    value: parameters[field] ?? "",
    error: errors(field),
    onChange: (event: { readonly target: { readonly value: string } }) =>
      workspace.parameter(field, event.target.value),
  });
  const all = [...NUMBERS, ...CHOICES].map(({ field }) => field);
  const others = ["stop_sequences", SCHEMA, "image_options"];
  return (
    <Fold
      title="Parameters"
      summary={changed === 0 ? "Defaults" : `${changed} changed`}
      isOpen={[...all, ...others].some((field) => errors(field) !== undefined)}
    >
      <div className="grid grid-cols-2 items-start gap-x-3 gap-y-4">
        {NUMBERS.map(({ field, label, hint }) => (
          <TextField
            key={field}
            label={label}
            hint={hint}
            inputMode="decimal"
            autoComplete="off"
            placeholder="Default"
            {...fieldProps(field)}
          />
        ))}
      </div>
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-1">
        <TextAreaField label="Stop sequences" hint="One per line, at most 4" rows={2} {...fieldProps("stop_sequences")} />
        {CHOICES.map(({ field, label, words }) => (
          <SelectField key={field} label={label} {...fieldProps(field)}>
            <option value="">Default</option>
            {words.map((word) => (
              <option key={word} value={word}>
                {word.replace("_", " ")}
              </option>
            ))}
          </SelectField>
        ))}
        {parameters.response_format === "json_schema" && (
          <TextAreaField
            label="JSON schema"
            rows={6}
            spellCheck={false}
            className="font-mono text-[0.8125rem]!"
            {...fieldProps(SCHEMA)}
          />
        )}
        {parameters.modalities === "image" && (
          <>
            <TextField
              label="Aspect ratio"
              hint="For example 1:1, 16:9 or 9:16"
              placeholder="Default"
              {...fieldProps("image_options.aspect_ratio")}
            />
            <TextField
              label="Image size"
              hint="For example 1K, 2K or 4K"
              placeholder="Default"
              {...fieldProps("image_options.size")}
            />
          </>
        )}
        <CheckField
          label="Strict mode: fail if a parameter is unsupported"
          checked={parameters.strict === "yes"}
          onChange={(event) => workspace.parameter("strict", event.target.checked ? "yes" : "")}
        />
      </div>
      {changed > 0 && (
        <Button look="quiet" size="small" onClick={() => workspace.draft({ parameters: {} })}>
          Reset to defaults
        </Button>
      )}
    </Fold>
  );
}
