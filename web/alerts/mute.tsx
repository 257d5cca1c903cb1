import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { Alert } from "../../gen/parley/console/v1/alert_pb.js";
import { alerts, refreshAlerts } from "../api/alerts.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";

const HOURS = [
  [1, "1 hour"],
  [8, "8 hours"],
  [24, "1 day"],
  [168, "7 days"],
  [720, "30 days"],
] as const;

/** Button and dialog that mute an alert, or unmute it. */
export function Mute({ alert: { id, title, muteUntil, resolveTime } }: { readonly alert: Alert }) {
  const [isOpen, setOpen] = useState(false);
  const mute = useMutation({
    mutationFn: (hours: number) => alerts.mute({ id, hours }),
    async onSuccess() {
      setOpen(false);
      await refreshAlerts();
    },
  });
  if (muteUntil !== undefined)
    return (
      <Button
        look="secondary"
        size="small"
        busy={mute.isPending}
        aria-label={`Unmute: ${title}`}
        onClick={() => mute.mutate(0)}
      >
        Unmute
      </Button>
    );
  if (resolveTime !== undefined) return null;
  return (
    <>
      <Button look="secondary" size="small" aria-label={`Mute: ${title}`} onClick={() => setOpen(true)}>
        Mute
      </Button>
      <Dialog
        open={isOpen}
        title="Mute this alert?"
        description={`No messages are sent about it, even if it resolves and opens again: ${title}`}
        onClose={() => setOpen(false)}
      >
        <Form fields={["hours"]} error={mute.error} onSubmit={(form) => mute.mutate(Number(form.get("hours")))}>
          {(errors) => (
            <>
              <SelectField label="For" name="hours" defaultValue="24" error={errors("hours")}>
                {HOURS.map(([hours, name]) => (
                  <option key={hours} value={hours}>
                    {name}
                  </option>
                ))}
              </SelectField>
              <DialogActions>
                <Button type="submit" busy={mute.isPending}>
                  {mute.isPending ? "Muting …" : "Mute"}
                </Button>
              </DialogActions>
            </>
          )}
        </Form>
      </Dialog>
    </>
  );
}
