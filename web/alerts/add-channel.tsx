import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ChannelKind } from "../../gen/parley/console/v1/alert_pb.js";
import { alerts, refreshAlerts } from "../api/alerts.ts";
import { Button } from "../components/button.tsx";
import { closeAndReset, Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { ShownOnce } from "../components/shown-once.tsx";
import { ChannelFilterFields, readChannelFilter } from "./channel-filter.tsx";

interface AddChannelProps {
  readonly open: boolean;
  readonly hasMail: boolean;
  readonly onClose: () => void;
}

/** Dialog that adds a channel, and shows the key of a webhook's signatures once. */
export default function AddChannel({ open, hasMail, onClose }: AddChannelProps) {
  const [kind, setKind] = useState(ChannelKind.WEBHOOK);
  const create = useMutation({
    mutationFn: (form: Written) =>
      alerts.createChannel({
        ...readChannelFilter(form),
        kind,
        name: form.get("name"),
        url: form.get("url"),
        recipients: form
          .get("recipients")
          .split(/[\s,;]+/)
          .filter((text) => text !== ""),
      }),
    async onSuccess({ signingKey }) {
      await refreshAlerts();
      if (signingKey === "") close();
    },
  });
  const close = (): void => closeAndReset(onClose, create);
  if (create.isSuccess && create.data.signingKey !== "")
    return (
      <ShownOnce
        open={open}
        title="Channel added"
        description="The receiver verifies signatures with this key. Copy it now. It is shown only once."
        secret={create.data.signingKey}
        onDone={close}
      />
    );
  return (
    <Dialog open={open} title="Add channel" onClose={close}>
      <Form
        fields={["kind", "name", "url", "recipients", "rules", "least_severity"]}
        error={create.error}
        onSubmit={(form) => create.mutate(form)}
      >
        {(errors) => (
          <>
            <SelectField
              label="Kind"
              name="kind"
              value={kind}
              error={errors("kind")}
              onChange={({ target }) => setKind(Number(target.value))}
            >
              <option value={ChannelKind.WEBHOOK}>Webhook (signed JSON)</option>
              <option value={ChannelKind.SLACK}>Slack (incoming webhook)</option>
              {hasMail && <option value={ChannelKind.EMAIL}>E-mail</option>}
            </SelectField>
            <TextField label="Name" name="name" autoComplete="off" hint="Such as On call." error={errors("name")} />
            {kind === ChannelKind.EMAIL ? (
              <TextField
                label="Addresses"
                name="recipients"
                autoComplete="off"
                hint="Up to 20, with commas."
                error={errors("recipients")}
              />
            ) : (
              <TextField
                label="Address"
                name="url"
                type="url"
                autoComplete="off"
                hint="Begins with https:// and is kept encrypted."
                error={errors("url")}
              />
            )}
            <ChannelFilterFields errors={errors} />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Adding …" : "Add channel"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
