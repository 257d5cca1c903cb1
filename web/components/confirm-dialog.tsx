import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";
import { Form } from "./form.tsx";

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly title: string;
  /** Consequences of the action. */
  readonly description: ReactNode;
  /** Label of the button: `Revoke key`. */
  readonly action: string;
  /** Label while the action is in progress: `Revoking …`. */
  readonly doing: string;
  /** Default: danger. */
  readonly look?: "danger" | "primary";
  readonly act: { readonly error: Error | null; readonly isPending: boolean; readonly mutate: () => void };
  readonly onClose: () => void;
  /** Options of the action. */
  readonly children?: ReactNode;
}

/** Dialog that confirms an action with effects on others. */
export function ConfirmDialog({
  open,
  title,
  description,
  action,
  doing,
  look = "danger",
  act,
  onClose,
  children,
}: ConfirmDialogProps) {
  return (
    <Dialog open={open} title={title} description={description} onClose={onClose}>
      <Form fields={[]} error={act.error} onSubmit={() => act.mutate()}>
        {() => (
          <>
            {children}
            <DialogActions>
              <Button type="submit" look={look} busy={act.isPending}>
                {act.isPending ? doing : action}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
