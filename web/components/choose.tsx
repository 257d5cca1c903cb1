import { SelectField } from "./field.tsx";

/** Something to choose, by what it is called. */
export type Choice = readonly [value: string, name: string];

interface ChooseProps {
  readonly label: string;
  /** Empty for all. */
  readonly value: string;
  /** What all of them are called. */
  readonly all: string;
  readonly choices: readonly Choice[];
  readonly onChange: (value: string) => void;
}

/** One of several, or all. */
export function Choose({ label, value, all, choices, onChange }: ChooseProps) {
  // What a link names is shown, also when it is gone or has not arrived yet.
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
