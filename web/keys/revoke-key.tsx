import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Key, KeyState, RevocationScope } from "../../gen/parley/console/v1/key_pb.js";
import { keys, keysQuery, refreshKeys } from "../api/keys.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { CheckField } from "../components/field.tsx";
import { notify } from "../components/notify.ts";
import { formatFromNow } from "../format/time.ts";
import type { KeyDialogProps } from "./dialog-props.ts";

/** Dialog that revokes a key, and by default also the keys that it replaced. */
export default function RevokeKey({ target, open, onClose }: KeyDialogProps) {
  const { data = [] } = useQuery({ ...keysQuery, enabled: target.familyId !== target.id });
  const predecessors = workingPredecessors(target, data);
  const [isWhole, setWhole] = useState(true);
  const revoke = useMutation({
    mutationFn: () =>
      keys.revoke({
        id: target.id,
        scope: isWhole ? RevocationScope.WITH_PREDECESSORS : RevocationScope.KEY_ONLY,
      }),
    async onSuccess() {
      await refreshKeys();
      notify(`Key ${target.name} revoked.`);
      onClose();
    },
  });
  const { lastUseTime } = target;
  const use = lastUseTime === undefined ? "Never used." : `Last used ${formatFromNow(lastUseTime)}.`;
  return (
    <ConfirmDialog
      open={open}
      title="Revoke key?"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> (<code className="font-mono">{target.display}</code>
          ) stops working immediately and cannot be restored. Requests with it are refused and streams in flight are
          cancelled. {use}
        </>
      }
      action="Revoke key"
      doing="Revoking …"
      act={revoke}
      onClose={onClose}
    >
      {predecessors.length > 0 && (
        <CheckField
          label={
            <>
              Also revoke the keys it replaced:{" "}
              {predecessors.map(({ id, display, expireTime }) => (
                <span key={id} className="block">
                  <code className="font-mono">{display}</code>
                  {expireTime !== undefined && `, expires ${formatFromNow(expireTime)}`}
                </span>
              ))}
            </>
          }
          checked={isWhole}
          onChange={(event) => setWhole(event.target.checked)}
        />
      )}
    </ConfirmDialog>
  );
}

/** Returns the active keys that rotations replaced by this one, directly or indirectly. */
function workingPredecessors({ id }: Key, known: readonly Key[]): Key[] {
  const predecessor = known.find(({ replacedBy }) => replacedBy === id);
  if (predecessor === undefined) return [];
  const before = workingPredecessors(predecessor, known);
  return predecessor.state === KeyState.ACTIVE ? [predecessor, ...before] : before;
}
