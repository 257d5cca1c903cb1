import { useMutation } from "@tanstack/react-query";
import { Ban } from "lucide-react";
import { type ReactNode, useState } from "react";
import { StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { refreshStops, stops } from "../api/stops.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { notify } from "../components/notify.ts";

const HOURS = [
  [1, "1 hour"],
  [24, "1 day"],
  [168, "7 days"],
  [720, "30 days"],
  [8_760, "365 days"],
] as const;

const WORDS = {
  [StopKind.SESSION]: "session",
  [StopKind.END_USER]: "end user",
} as const;

interface StopCallsProps {
  readonly accountId: string;
  readonly kind: keyof typeof WORDS;
  readonly value: string;
  /** Renders the control that opens the dialog. Default: a button with a text. */
  readonly children?: (open: () => void) => ReactNode;
}

/** Button and dialog that stop the calls of a session or end user. */
export function StopCalls({ accountId, kind, value, children }: StopCallsProps) {
  const [isOpen, setOpen] = useState(false);
  const word = WORDS[kind];
  const stop = useMutation({
    mutationFn: (hours: number) =>
      stops.create({ accountId, kind, value, duration: { seconds: BigInt(hours * 3_600) } }),
    async onSuccess() {
      setOpen(false);
      await refreshStops();
      notify(`The ${word} is stopped.`);
    },
  });
  return (
    <>
      {children?.(() => setOpen(true)) ?? (
        <Button look="secondary" size="small" onClick={() => setOpen(true)}>
          <Ban aria-hidden className="size-4" />
          Stop {word}
        </Button>
      )}
      <Dialog
        open={isOpen}
        title={`Stop this ${word}?`}
        description={
          <>
            Calls of the {word} <bdi className="font-medium wrap-anywhere text-ink">{value}</bdi> with keys of this
            account are refused, and streams in flight are cancelled. The stop is listed above the requests, where it
            can be ended.
          </>
        }
        onClose={() => setOpen(false)}
      >
        <Form fields={["duration"]} error={stop.error} onSubmit={(form) => stop.mutate(Number(form.get("duration")))}>
          {(errors) => (
            <>
              <SelectField label="For" name="duration" defaultValue="24" error={errors("duration")}>
                {HOURS.map(([hours, name]) => (
                  <option key={hours} value={hours}>
                    {name}
                  </option>
                ))}
              </SelectField>
              <DialogActions>
                <Button type="submit" look="danger" busy={stop.isPending}>
                  {stop.isPending ? "Stopping …" : `Stop ${word}`}
                </Button>
              </DialogActions>
            </>
          )}
        </Form>
      </Dialog>
    </>
  );
}
