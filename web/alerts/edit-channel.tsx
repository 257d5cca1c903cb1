import { useMutation } from "@tanstack/react-query";
import type { AlertChannel } from "../../gen/parley/console/v1/alert_pb.js";
import { alerts, refreshAlerts } from "../api/alerts.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { ChannelFilterFields, readChannelFilter } from "./channel-filter.tsx";

interface EditChannelProps {
  readonly target: AlertChannel;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog that changes the name of a channel, and which alerts are sent to it. */
export default function EditChannel({ target, open, onClose }: EditChannelProps) {
  const save = useMutation({
    mutationFn: (form: Written) =>
      alerts.updateChannel({ id: target.id, name: form.get("name"), ...readChannelFilter(form) }),
    async onSuccess() {
      onClose();
      await refreshAlerts();
    },
  });
  return (
    <Dialog
      open={open}
      title="Edit channel"
      description="For another receiver add a channel, and remove this one."
      onClose={onClose}
    >
      <Form fields={["name", "rules", "least_severity"]} error={save.error} onSubmit={(form) => save.mutate(form)}>
        {(errors) => (
          <>
            <TextField label="Name" name="name" autoComplete="off" defaultValue={target.name} error={errors("name")} />
            <ChannelFilterFields chosen={target} errors={errors} />
            <DialogActions>
              <Button type="submit" busy={save.isPending}>
                {save.isPending ? "Saving …" : "Save"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
