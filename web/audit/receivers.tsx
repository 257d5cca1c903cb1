import { useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import type { AuditStream } from "../../gen/parley/console/v1/audit_pb.js";
import { Administration } from "../administration/administration.tsx";
import { audit, receiversQuery, refreshReceivers } from "../api/audit.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { closeAndReset, Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { ShownOnce } from "../components/shown-once.tsx";
import { formatCount } from "../format/number.ts";
import { formatFromNow } from "../format/time.ts";

/** Page of the receivers to which the audit log is sent. */
export default function Receivers() {
  const [isAdding, setAdding] = useState(false);
  return (
    <Administration
      title="Receivers of the audit log"
      description="Every new entry is posted to these addresses, in order and signed. Entries that a receiver missed are sent once it is reachable."
      actions={<Button onClick={() => setAdding(true)}>Add receiver</Button>}
    >
      {() => (
        <>
          <ReceiverList />
          <AddReceiver open={isAdding} onClose={() => setAdding(false)} />
        </>
      )}
    </Administration>
  );
}

function ReceiverList() {
  const list = useQuery(receiversQuery);
  if (list.isPending) return <Loading what="the receivers" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  if (list.data.length === 0) return <Empty title="No receivers">The log stays in the database.</Empty>;
  return (
    <ul aria-label="Receivers" className="divide-y divide-line rounded-xl border border-line bg-surface">
      {list.data.map((receiver) => (
        <Receiver key={receiver.id} receiver={receiver} />
      ))}
    </ul>
  );
}

function Receiver({ receiver }: { readonly receiver: AuditStream }) {
  const { id, target, sequence, waiting, sendTime, problem, nextTime } = receiver;
  const [isRemoving, setRemoving] = useState(false);
  const remove = useMutation({
    mutationFn: () => audit.removeStream({ id }),
    async onSuccess() {
      setRemoving(false);
      await refreshReceivers();
    },
  });
  return (
    <li className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-5 py-4 sm:flex-nowrap">
      <div className="min-w-0">
        <h2 className="text-base font-semibold wrap-anywhere">{target}</h2>
        <p className="mt-0.5 flex flex-wrap gap-x-4 text-sm text-muted">
          <span>
            {sendTime ? `Accepted up to entry ${formatCount(sequence)} ${formatFromNow(sendTime)}` : "Nothing sent yet"}
          </span>
          <span>{formatCount(waiting)} waiting</span>
        </p>
        {problem !== "" && (
          <p className="mt-0.5 text-sm wrap-anywhere text-danger">
            {problem} {nextTime && `Next attempt ${formatFromNow(nextTime)}.`}
          </p>
        )}
      </div>
      <Button look="quiet danger" size="small" aria-label={`Remove ${target}`} onClick={() => setRemoving(true)}>
        Remove
      </Button>
      <ConfirmDialog
        open={isRemoving}
        title={`Remove the receiver ${target}?`}
        description="Nothing more is sent to it, and its position in the log is lost."
        action="Remove receiver"
        doing="Removing …"
        act={remove}
        onClose={() => setRemoving(false)}
      />
    </li>
  );
}

function AddReceiver({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const create = useMutation({
    mutationFn: (form: Written) => audit.createStream({ url: form.get("url") }),
    onSuccess: refreshReceivers,
  });
  const close = (): void => closeAndReset(onClose, create);
  if (create.data !== undefined)
    return (
      <ShownOnce
        open={open}
        title="Receiver added"
        description="The receiver verifies signatures with this key. Copy it now. It is shown only once."
        secret={create.data.signingKey}
        onDone={close}
      />
    );
  return (
    <Dialog open={open} title="Add receiver" description="All entries from now on are sent to it." onClose={close}>
      <Form fields={["url"]} error={create.error} onSubmit={(form) => create.mutate(form)}>
        {(errors) => (
          <>
            <TextField
              label="Address"
              name="url"
              type="url"
              autoComplete="off"
              hint="Begins with https:// and is kept encrypted."
              error={errors("url")}
            />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Adding …" : "Add receiver"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
