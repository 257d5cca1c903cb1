import { readFailure } from "../api/failure.ts";
import { useWorkspace } from "./workspace.ts";

/** What is wrong with a field of the request, by its name there: said before it was sent, or by the service. */
export function useFieldErrors(): (field: string) => string | undefined {
  const error = useWorkspace(({ refusal, run }) => refusal ?? run?.error);
  const fields = error == null ? undefined : readFailure(error)?.fields;
  return (field) => {
    if (fields === undefined) return undefined;
    const exact = fields.get(field);
    if (exact !== undefined) return exact;
    // Of a list the service names the entry.
    for (const [name, text] of fields) {
      if (name.startsWith(`${field}[`) || name.startsWith(`${field}.`)) return `${name}: ${text}`;
    }
    return undefined;
  };
}
