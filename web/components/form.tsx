import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { type Failing, readFailure } from "../api/failure.ts";
import { Alert } from "./alert.tsx";

/** What was written into a form. */
export class Written {
  readonly #form: FormData;

  constructor(form: HTMLFormElement) {
    this.#form = new FormData(form);
  }

  /** The text of a field; empty for one that is not there. */
  get(field: string): string {
    return this.all(field)[0] ?? "";
  }

  /** All that was chosen under one name. */
  all(field: string): string[] {
    return this.#form.getAll(field).filter((value) => typeof value === "string");
  }
}

interface FormProps {
  /** Names of the fields that show their errors themselves. */
  readonly fields: readonly string[];
  /** Of the latest attempt. */
  readonly error: unknown;
  readonly onSubmit: (written: Written) => void;
  readonly className?: string;
  readonly children: (errors: (field: string) => string | undefined) => ReactNode;
}

/**
 * A form whose errors come from the services, which are the only ones that judge what was written: at the field that they name,
 * which gets the focus, and above the form where they name none of its fields.
 */
export function Form({ fields, error, onSubmit, className = "space-y-5", children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const failing = error == null ? undefined : readFailure(error);
  useEffect(() => {
    if (error != null) form.current?.querySelector<HTMLElement>("[aria-invalid]:is(input, select)")?.focus();
  }, [error]);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    // A form inside a dialog that another form has opened is inside that one for React.
    event.stopPropagation();
    onSubmit(new Written(event.currentTarget));
  };
  return (
    <form ref={form} noValidate onSubmit={submit} className={className}>
      <Unplaced failing={failing} fields={fields} />
      {children((field) => failing?.fields.get(field))}
    </form>
  );
}

function Unplaced({ failing, fields }: { readonly failing: Failing | undefined; readonly fields: readonly string[] }) {
  if (failing === undefined) return null;
  const isPlaced = failing.fields.size > 0 && [...failing.fields.keys()].every((field) => fields.includes(field));
  return isPlaced ? null : <Alert>{failing.message}</Alert>;
}
