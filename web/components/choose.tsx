import { SelectField } from "./field.tsx";

export type Choice = readonly [value: string, name: string];

interface ChooseProps {
  readonly label: string;
  /** Empty for `all`. */
  readonly value: string;
  /** Label of the option for all. */
  readonly all: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}

/** Select field with an option for all. */
export function Choose({ label, value, all, choices, onChange }: ChooseProps) {
  // Shows a value from a link even if it no longer exists or is not loaded yet.
  const isKnown = value === "" || choices.some(([choice]) => choice === value);
  return (
    <SelectField label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{all}</option>
      {!isKnown && <option value={value}>{value}</option>}
      {choices.map(([choice, name]) => (
        <option key={choice} value={choice}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}
