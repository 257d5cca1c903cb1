import { readFailure } from "../api/failure.ts";
import { useWorkspace } from "./workspace.ts";

/** Returns the validation error of a request field, from the playground or the service. */
export function useFieldErrors(): (field: string) => string | undefined {
  const error = useWorkspace(({ threads }) =>
    threads.map(({ refusal, run }) => refusal ?? run?.error).find((each) => each != null),
  );
  const fields = error == null ? undefined : readFailure(error)?.fields;
  return (field) => {
    if (fields === undefined) return undefined;
    const exact = fields.get(field);
    if (exact !== undefined) return exact;
    // The service reports list errors by entry.
    for (const [name, text] of fields) {
      if (name.startsWith(`${field}[`) || name.startsWith(`${field}.`)) return `${name}: ${text}`;
    }
    return undefined;
  };
}
