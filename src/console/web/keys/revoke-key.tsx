import { useMutation } from "@tanstack/react-query";
import { keys, refreshKeys } from "../api/keys.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
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
    <ConfirmDialog
      open={open}
      title="Revoke key?"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> (<code className="font-mono">{target.display}</code>
          ) ends at once, and cannot be brought back: programs that use it are refused. {use}
        </>
      }
      action="Revoke key"
      doing="Revoking …"
      act={revoke}
      onClose={onClose}
    />
  );
}
