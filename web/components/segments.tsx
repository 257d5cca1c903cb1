import { useId } from "react";

interface SegmentsProps<T extends string> {
  /** Name of the group, for screen readers. */
  readonly legend: string;
  /** Choices with display names. */
  readonly choices: readonly (readonly [value: T, name: string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** Radio group displayed as a segmented control. */
export function Segments<T extends string>({ legend, choices, value, onChange }: SegmentsProps<T>) {
  const group = useId();
  return (
    <fieldset className="flex rounded-lg border border-line bg-sunken p-0.5">
      <legend className="sr-only">{legend}</legend>
      {choices.map(([each, name]) => (
        <label
          key={each}
          className="flex min-h-8 flex-1 items-center justify-center rounded-md px-2.5 text-sm text-muted has-checked:bg-surface has-checked:font-medium has-checked:text-ink has-checked:shadow-xs has-focus-visible:outline-2 has-focus-visible:outline-accent"
        >
          <input
            type="radio"
            className="sr-only"
            name={group}
            checked={value === each}
            onChange={() => onChange(each)}
          />
          {name}
        </label>
      ))}
    </fieldset>
  );
}
