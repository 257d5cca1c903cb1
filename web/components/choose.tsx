import { lazy, Suspense } from "react";
import { type Named, SelectField } from "./field.tsx";

// Loaded on demand, because its code is half as large as a page's, and few lists are long enough to need it.
const Combobox = lazy(async () => ({ default: (await import("./combobox.tsx")).Combobox }));

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
export function Choose({ choices, all, value, ...rest }: ChooseProps) {
  // Shows a value from a link even if it no longer exists or is not loaded yet.
  const isKnown = value === "" || choices.some(([choice]) => choice === value);
  const known: readonly Choice[] = isKnown ? choices : [[value, value], ...choices];
  const listed: readonly Choice[] = all === undefined ? known : [["", all], ...known];
  const { placeholder, search, onChange, ...field } = rest;
  const isFew = search === undefined && choices.length <= MANY;
  const select = (
    <SelectField {...field} value={value} onChange={(event) => onChange(event.target.value)}>
      {all === undefined && value === "" && (
        <option value="" disabled>
          {placeholder}
        </option>
      )}
      {/* While the combobox is loaded, the chosen one is enough: hundreds of options take longer than the combobox. */}
      {(isFew ? listed : listed.filter(([choice]) => choice === value)).map(([choice, name]) => (
        <option key={choice} value={choice}>
          {name}
        </option>
      ))}
    </SelectField>
  );
  if (isFew) return select;
  return (
    <Suspense fallback={select}>
      <Combobox {...rest} choices={listed} value={value} />
    </Suspense>
  );
}
