import { useMutation } from "@tanstack/react-query";
import { type AuditFilter, EXPORT_FORMATS, exportEntries } from "../api/audit.ts";
import { readFailure } from "../api/failure.ts";
import { Button } from "../components/button.tsx";
import { download } from "../format/download.ts";

type Format = keyof typeof EXPORT_FORMATS;

const LABELS: Readonly<Record<Format, readonly [name: string, mediaType: string]>> = {
  csv: ["Export CSV", "text/csv"],
  jsonl: ["Export JSON lines", "application/jsonl"],
};

/** Buttons that save the entries that match. */
export function Export({ filterNow }: { readonly filterNow: () => AuditFilter }) {
  const save = useMutation({
    mutationFn: (format: Format) => exportEntries(filterNow(), format),
    onSuccess: ({ pieces }, format) => download(`parley-audit.${format}`, pieces, LABELS[format][1]),
  });
  return (
    <div className="flex flex-wrap items-center justify-end gap-2">
      {(Object.keys(LABELS) as Format[]).map((format) => (
        <Button
          key={format}
          look="secondary"
          size="small"
          busy={save.isPending && save.variables === format}
          onClick={() => save.mutate(format)}
        >
          {LABELS[format][0]}
        </Button>
      ))}
      {save.isError && (
        <p role="alert" className="text-sm text-danger">
          {readFailure(save.error)?.message ?? "The export failed. Try again."}
        </p>
      )}
      {save.data?.isPart === true && (
        <p role="status" className="basis-full text-right text-sm text-warn">
          The file has the latest 100 MB. <code>parley audit export</code> writes all of them.
        </p>
      )}
    </div>
  );
}
