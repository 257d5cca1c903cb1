import { X } from "lucide-react";
import { ATTRIBUTION_FIELDS, type AttributionField, ATTRIBUTIONS } from "../format/attribution.ts";
import { Button } from "./button.tsx";
import { SelectField, TextField } from "./field.tsx";
import { Form } from "./form.tsx";

type Values = Readonly<Partial<Record<AttributionField, string>>>;

interface AttributionFilterProps {
  readonly values: Values;
  /** Changes fields; an empty text removes one. */
  readonly onChange: (changes: Values) => void;
}

/**
 * Fields that filter a page by session, end user, agent or tag, with a button to remove each filter. Collapsed until
 * opened or set.
 */
export function AttributionFilter({ values, onChange }: AttributionFilterProps) {
  const set = ATTRIBUTION_FIELDS.filter((field) => (values[field] ?? "") !== "");
  return (
    <details className="text-sm open:basis-full" open={set.length > 0 || undefined}>
      <summary className="-ml-3 inline-flex min-h-9 items-center rounded-lg px-3 font-medium text-accent hover:bg-accent-soft">
        Session, end user, agent, tag
      </summary>
      <div className="mt-1 flex flex-wrap items-end gap-3">
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
        {set.map((field) => (
          <Button
            key={field}
            look="secondary"
            size="small"
            aria-label={`Remove filter: ${ATTRIBUTIONS[field]}`}
            onClick={() => onChange({ [field]: "" })}
          >
            {ATTRIBUTIONS[field]}: <bdi className="max-w-60 truncate">{values[field]}</bdi>
            <X aria-hidden className="size-4" />
          </Button>
        ))}
      </div>
    </details>
  );
}
