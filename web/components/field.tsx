import { type ComponentProps, type ReactNode, useId } from "react";
import { ChevronDown, Search } from "lucide-react";

/** Classes of an input. */
export const BOX =
  "block w-full min-h-11 sm:min-h-9 rounded-lg border border-edge bg-surface px-3 py-2 sm:py-1.5 text-base sm:text-sm " +
  "placeholder:text-muted aria-invalid:border-danger disabled:bg-sunken disabled:text-muted";

export interface Named {
  readonly label: string;
  /** Only for screen readers: the field says itself what it is for. */
  readonly isLabelHidden?: boolean;
  /** Help text. */
  readonly hint?: ReactNode;
  /** Validation error. */
  readonly error?: string | undefined;
}

/** Text input with label, hint and validation error. */
export function TextField({ label, isLabelHidden = false, hint, error, ...rest }: Named & ComponentProps<"input">) {
  const id = useId();
  return (
    <Frame {...{ id, label, isLabelHidden, hint, error }}>
      <input {...rest} id={id} {...describedBy(id, hint, error)} className={BOX} />
    </Frame>
  );
}

interface SearchFieldProps {
  /** Shown within the field: `Find a key`. */
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly maxLength?: number;
}

/** Text input that narrows a list. The key `/` goes to the first one of a page. */
export function SearchField({ label, onChange, ...rest }: SearchFieldProps) {
  return (
    <div className="relative min-w-0">
      <Search aria-hidden className="pointer-events-none absolute inset-y-0 left-3 my-auto size-4 text-muted" />
      <input
        {...rest}
        type="search"
        autoComplete="off"
        aria-label={label}
        placeholder={label}
        onChange={(event) => onChange(event.target.value)}
        className={`${BOX} pl-9`}
      />
    </div>
  );
}

/** Multi-line text input. */
export function TextAreaField({ label, hint, error, className = "", ...rest }: Named & ComponentProps<"textarea">) {
  const id = useId();
  return (
    <Frame {...{ id, label, hint, error }}>
      <textarea {...rest} id={id} {...describedBy(id, hint, error)} className={`${BOX} ${className}`} />
    </Frame>
  );
}

/** Select field. */
export function SelectField({
  label,
  isLabelHidden = false,
  hint,
  error,
  children,
  ...rest
}: Named & ComponentProps<"select">) {
  const id = useId();
  return (
    <Frame {...{ id, label, isLabelHidden, hint, error }}>
      <div className="relative">
        <select {...rest} id={id} {...describedBy(id, hint, error)} className={`${BOX} appearance-none truncate pr-9`}>
          {children}
        </select>
        <ChevronDown aria-hidden className="pointer-events-none absolute inset-y-0 right-3 my-auto size-4 text-muted" />
      </div>
    </Frame>
  );
}

/** Checkbox. */
export function CheckField({ label, ...rest }: { readonly label: ReactNode } & ComponentProps<"input">) {
  return (
    <label className="flex min-h-9 items-center gap-3 text-sm">
      <input {...rest} type="checkbox" className="size-4.5 shrink-0" />
      <span className="min-w-0 wrap-anywhere">{label}</span>
    </label>
  );
}

/** Group of fields with a common label. */
export function FieldGroup({ label, hint, error, children }: Named & { readonly children: ReactNode }) {
  const id = useId();
  return (
    <fieldset {...describedBy(id, hint, error)} className="space-y-1.5">
      <legend className="text-sm font-medium">{label}</legend>
      {children}
      <Notes {...{ id, hint, error }} />
    </fieldset>
  );
}

/** Label, hint and validation error around an input with this ID. */
export function Frame({
  id,
  label,
  isLabelHidden = false,
  hint,
  error,
  children,
}: Named & { readonly id: string; readonly children: ReactNode }) {
  return (
    <div className="min-w-0 space-y-1.5">
      <label htmlFor={id} className={isLabelHidden ? "sr-only" : "block text-sm font-medium"}>
        {label}
      </label>
      {children}
      <Notes {...{ id, hint, error }} />
    </div>
  );
}

function Notes({ id, hint, error }: Omit<Named, "label"> & { readonly id: string }) {
  return (
    <>
      {error !== undefined && (
        <p id={`${id}-error`} className="text-sm wrap-anywhere whitespace-pre-line text-danger">
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="text-sm text-muted">
          {hint}
        </p>
      )}
    </>
  );
}

/** Attributes of an input in a `Frame`. */
export function describedBy(id: string, hint: ReactNode, error: string | undefined) {
  const notes = [error === undefined ? "" : `${id}-error`, hint === undefined ? "" : `${id}-hint`].join(" ").trim();
  return { "aria-invalid": error === undefined ? undefined : true, "aria-describedby": notes || undefined } as const;
}
