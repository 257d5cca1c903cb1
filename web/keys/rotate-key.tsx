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
  [RotationGrace.ONE_HOUR, "For 1 more hour"],
  [RotationGrace.ONE_DAY, "For 24 more hours"],
  [RotationGrace.SEVEN_DAYS, "For 7 more days"],
  [RotationGrace.NONE, "Revoke immediately"],
] as const;

/** Dialog that rotates a key and shows the new secret. The old key stays active for the grace period. */
export default function RotateKey({ target, open, onClose }: KeyDialogProps) {
  const rotate = useMutation({
    mutationFn: (grace: RotationGrace) => keys.rotate({ id: target.id, grace }),
    onSuccess: refreshKeys,
  });
  if (rotate.data?.key !== undefined) {
    return (
      <SecretOnce
        open={open}
        title="API key rotated"
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
          Creates a new secret with the name, permissions and limits of{" "}
          <bdi className="font-medium text-ink">{target.name}</bdi>.
        </>
      }
      onClose={onClose}
    >
      <Form fields={["grace"]} error={rotate.error} onSubmit={(written) => rotate.mutate(Number(written.get("grace")))}>
        {(errors) => (
          <>
            <SelectField
              label="Keep the old key active"
              name="grace"
              defaultValue={RotationGrace.ONE_DAY}
              hint="Grace period to deploy the new key."
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
