import { useMutation } from "@tanstack/react-query";
import type { Invitation } from "../../gen/parley/console/v1/account_pb.js";
import { accounts, refreshInvitations } from "../api/accounts.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { invited } from "./invitation-item.tsx";

interface RevokeInvitationProps {
  readonly target: Invitation;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog that revokes an unused invitation. */
export default function RevokeInvitation({ target, open, onClose }: RevokeInvitationProps) {
  const revoke = useMutation({
    mutationFn: () => accounts.revokeInvitation({ id: target.id }),
    async onSuccess() {
      onClose();
      await refreshInvitations();
    },
  });
  return (
    <ConfirmDialog
      open={open}
      title="Revoke invitation?"
      description={
        <>
          The invitation for <bdi className="font-medium text-ink">{invited(target).toLowerCase()}</bdi> stops working
          immediately.
        </>
      }
      action="Revoke invitation"
      doing="Revoking …"
      act={revoke}
      onClose={onClose}
    />
  );
}
