import { useMutation } from "@tanstack/react-query";
import { RotationGrace } from "../../gen/parley/console/v1/key_pb.js";
import { keys, refreshKeys } from "../api/keys.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import type { KeyDialogProps } from "./dialog-props.ts";
import { SecretOnce } from "./secret.tsx";

const GRACES = [
  [RotationGrace.ONE_HOUR, "For another hour"],
  [RotationGrace.ONE_DAY, "For another 24 hours"],
  [RotationGrace.SEVEN_DAYS, "For another 7 days"],
  [RotationGrace.NONE, "Not at all: it ends now"],
] as const;

/** Makes a key anew and shows its secret; the old one goes on for a while. */
export default function RotateKey({ target, open, onClose }: KeyDialogProps) {
  const rotate = useMutation({
    mutationFn: (grace: RotationGrace) => keys.rotate({ id: target.id, grace }),
    onSuccess: refreshKeys,
  });
  if (rotate.data?.key !== undefined) {
    return (
      <SecretOnce
        open={open}
        title="Your rotated key"
        made={{ ...rotate.data, key: rotate.data.key }}
        onDone={onClose}
      />
    );
  }
  return (
    <Dialog
      open={open}
      title="Rotate key"
      description={
        <>
          A new key with the name, permissions and limits of <bdi className="font-medium text-ink">{target.name}</bdi>{" "}
          takes its place.
        </>
      }
      onClose={onClose}
    >
      <Form fields={["grace"]} error={rotate.error} onSubmit={(written) => rotate.mutate(Number(written.get("grace")))}>
        {(errors) => (
          <>
            <SelectField
              label="The old key works"
              name="grace"
              defaultValue={RotationGrace.ONE_DAY}
              hint="Long enough to give the new one to everything that uses it."
              error={errors("grace")}
            >
              {GRACES.map(([grace, label]) => (
                <option key={grace} value={grace}>
                  {label}
                </option>
              ))}
            </SelectField>
            <DialogActions>
              <Button type="submit" busy={rotate.isPending}>
                {rotate.isPending ? "Rotating …" : "Rotate key"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
