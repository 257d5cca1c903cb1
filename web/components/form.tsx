import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { type Failing, readFailure } from "../api/failure.ts";
import { Alert } from "./alert.tsx";

/** Values of a form. */
export class Written {
  readonly #form: FormData;

  constructor(form: HTMLFormElement) {
    this.#form = new FormData(form);
  }

  /** Returns the value of a field; empty for a missing one. */
  get(field: string): string {
    return this.all(field)[0] ?? "";
  }

  /** Returns all values of a field. */
  all(field: string): string[] {
    return this.#form.getAll(field).filter((value) => typeof value === "string");
  }
}

interface FormProps {
  /** Names of the fields that display their own errors. */
  readonly fields: readonly string[];
  /** Error of the latest submission. */
  readonly error: unknown;
  readonly onSubmit: (written: Written) => void;
  readonly className?: string;
  readonly children: (errors: (field: string) => string | undefined) => ReactNode;
}

/**
 * Form validated only by the services. A field error is shown at its field, and the first field with an error gets the
 * focus. Errors without a field of this form are shown above the form.
 */
export function Form({ fields, error, onSubmit, className = "space-y-5", children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const failing = error == null ? undefined : readFailure(error);
  useEffect(() => {
    if (error != null) form.current?.querySelector<HTMLElement>("[aria-invalid]:is(input, select, textarea)")?.focus();
  }, [error]);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    // In React, events bubble from a dialog's form to the form that opened the dialog.
    event.stopPropagation();
    onSubmit(new Written(event.currentTarget));
  };
  return (
    <form ref={form} noValidate onSubmit={submit} className={className}>
      <FormError failing={failing} fields={fields} />
      {children((field) => failing?.fields.get(field))}
    </form>
  );
}

function FormError({ failing, fields }: { readonly failing: Failing | undefined; readonly fields: readonly string[] }) {
  if (failing === undefined) return null;
  const isShownAtFields =
    failing.fields.size > 0 && [...failing.fields.keys()].every((field) => fields.includes(field));
  return isShownAtFields ? null : <Alert>{failing.message}</Alert>;
}
