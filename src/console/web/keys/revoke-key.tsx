import { useMutation } from "@tanstack/react-query";
import { keys, refreshKeys } from "../api/keys.ts";
import { Button } from "../parts/button.tsx";
import { Dialog, DialogActions } from "../parts/dialog.tsx";
import { Form } from "../parts/form.tsx";
import { formatFromNow } from "../text/time.ts";
import type { KeyDialogProps } from "./dialog-props.ts";

/** Ends a key for good. */
export default function RevokeKey({ target, open, onClose }: KeyDialogProps) {
  const revoke = useMutation({
    mutationFn: () => keys.revoke({ id: target.id }),
    async onSuccess() {
      await refreshKeys();
      onClose();
    },
  });
  const { lastUseTime } = target;
  const use = lastUseTime === undefined ? "It was never used." : `It was last used ${formatFromNow(lastUseTime)}.`;
  return (
    <Dialog
      open={open}
      title="Revoke key?"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> (<code className="font-mono">{target.display}</code>
          ) ends at once, and cannot be brought back: programs that use it are refused. {use}
        </>
      }
      onClose={onClose}
    >
      <Form fields={[]} error={revoke.error} onSubmit={() => revoke.mutate()}>
        {() => (
          <DialogActions>
            <Button type="submit" look="danger" busy={revoke.isPending}>
              {revoke.isPending ? "Revoking …" : "Revoke key"}
            </Button>
          </DialogActions>
        )}
      </Form>
    </Dialog>
  );
}
