import { ATTRIBUTION_FIELDS, type AttributionField, ATTRIBUTIONS } from "../format/attribution.ts";
import { Button } from "./button.tsx";
import { chipOf, type FilterChip } from "./filter-chips.tsx";
import { SelectField, TextField } from "./field.tsx";
import { Form } from "./form.tsx";

type Values = Readonly<Partial<Record<AttributionField, string>>>;

/** The set filters. */
export function attributionChips(values: Values, onChange: (changes: Values) => void): readonly FilterChip[] {
  return ATTRIBUTION_FIELDS.flatMap((field) =>
    chipOf(ATTRIBUTIONS[field], values[field] ?? "", { onRemove: () => onChange({ [field]: "" }) }),
  );
}

/** Fields that filter a page by session, end user, agent or tag. Collapsed until opened. */
export function AttributionFilter({ onChange }: { readonly onChange: (changes: Values) => void }) {
  return (
    <details className="text-sm open:basis-full">
      <summary className="-ml-3 inline-flex min-h-9 items-center rounded-lg px-3 font-medium text-accent hover:bg-accent-soft">
        Session, end user, agent, tag
      </summary>
      <div className="mt-1">
        <Form
          fields={["field", "value"]}
          error={null}
          onSubmit={(written) => {
            const value = written.get("value").trim();
            if (value !== "") onChange({ [written.get("field")]: value });
          }}
          className="flex flex-wrap items-end gap-3"
        >
          {() => (
            <>
              <SelectField label="Filter by" name="field" defaultValue="session">
                {ATTRIBUTION_FIELDS.map((field) => (
                  <option key={field} value={field}>
                    {ATTRIBUTIONS[field]}
                  </option>
                ))}
              </SelectField>
              <TextField label="Exact value" name="value" autoComplete="off" spellCheck={false} maxLength={200} />
              <Button type="submit" look="secondary">
                Apply
              </Button>
            </>
          )}
        </Form>
      </div>
    </details>
  );
}
