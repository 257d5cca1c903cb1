import { useMutation } from "@tanstack/react-query";
import { configuration } from "../api/configuration.ts";
import { readFailure } from "../api/failure.ts";
import { Button } from "../components/button.tsx";
import { download } from "../format/download.ts";

/** Button that saves the stored configuration as YAML. */
export function Export() {
  const save = useMutation({
    mutationFn: () => configuration.export({}),
    onSuccess: ({ document, version }) =>
      download(`parley-configuration-${version}.yaml`, document, "application/yaml"),
  });
  return (
    <>
      <Button
        look="secondary"
        size="small"
        busy={save.isPending}
        title="The stored configuration as YAML, without API keys"
        onClick={() => save.mutate()}
      >
        Export
      </Button>
      {save.isError && (
        <p role="alert" className="self-center text-sm text-danger">
          {readFailure(save.error)?.message}
        </p>
      )}
    </>
  );
}
