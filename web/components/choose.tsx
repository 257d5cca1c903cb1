import { type Named, SelectField } from "./field.tsx";
import { onDemand } from "./on-demand.tsx";

// Loaded on demand, because its code is half as large as a page's, and few lists are long enough to need it.
const Combobox = onDemand(async () => ({ default: (await import("./combobox.tsx")).Combobox }), ChosenOnly);

export type Choice = readonly [value: string, name: string];

export interface ChooseProps extends Named {
  /** Name in a form. */
  readonly name?: string;
  /** Empty for `all`, or while nothing is chosen. */
  readonly value: string;
  /** Label of the choice that selects all. Default: there is no such choice. */
  readonly all?: string;
  /** Shown while nothing is chosen, without `all`. */
  readonly placeholder?: string;
  readonly choices: readonly Choice[];
  /** Default: the choices are all there are. */
  readonly search?: ChoiceSearch;
  readonly onChange: (value: string) => void;
}

/** A search by the server, where the choices are only those of an empty text. */
export interface ChoiceSearch {
  /** Choices with the words of the text, as far as they are found. */
  readonly found: readonly Choice[];
  /** Whether `found` is of an earlier text. */
  readonly isPending: boolean;
  /** Whether there are more than `found`. */
  readonly isCut: boolean;
  readonly onText: (text: string) => void;
}

/** Number of choices above which the field is a combobox with a search. */
export const MANY = 30;

/** Field for one of several choices: a select, or with many choices a combobox with a search. */
export function Choose({ choices, all, value, search, ...rest }: ChooseProps) {
  // Shows a value from a link even if it no longer exists or is not loaded yet.
  const isKnown = value === "" || choices.some(([choice]) => choice === value);
  const known: readonly Choice[] = isKnown ? choices : [[value, value], ...choices];
  const listed: readonly Choice[] = all === undefined ? known : [["", all], ...known];
  if (search !== undefined || choices.length > MANY)
    return <Combobox {...rest} {...(search && { search })} choices={listed} value={value} />;
  return <Select {...rest} choices={listed} value={value} />;
}

/** In place of the combobox while it is loaded: hundreds of options would take longer than the combobox. */
function ChosenOnly({ search: _search, ...field }: Omit<ChooseProps, "all">) {
  return <Select {...field} choices={field.choices.filter(([choice]) => choice === field.value)} />;
}

function Select({ choices, placeholder, onChange, ...field }: Omit<ChooseProps, "all" | "search">) {
  return (
    <SelectField {...field} onChange={(event) => onChange(event.target.value)}>
      {field.value === "" && !choices.some(([choice]) => choice === "") && (
        <option value="" disabled>
          {placeholder}
        </option>
      )}
      {choices.map(([choice, name]) => (
        <option key={choice} value={choice}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}
