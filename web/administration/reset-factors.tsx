import { useMutation } from "@tanstack/react-query";
import { factors } from "../api/factors.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { notify } from "../components/notify.ts";
import type { AccountDialogProps } from "./account-row.tsx";

/** Dialog that removes the second factors of a person who has lost them. */
export default function ResetFactors({ target, open, onClose }: AccountDialogProps) {
  const reset = useMutation({
    mutationFn: () => factors.reset({ id: target.id }),
    onSuccess({ passkeys, totp }) {
      onClose();
      const removed = [
        ...(passkeys > 0 ? [passkeys === 1 ? "1 passkey" : `${passkeys} passkeys`] : []),
        ...(totp ? ["the authenticator app"] : []),
      ];
      notify(removed.length === 0 ? "There were no second factors." : `Removed ${removed.join(" and ")}.`);
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title="Reset second factors?"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> loses all passkeys, the authenticator app and its
          recovery codes, and is signed out everywhere. The password stays. First make sure that the request comes from
          this person.
        </>
      }
      action="Reset second factors"
      doing="Resetting …"
      act={reset}
      onClose={onClose}
    />
  );
}
