import type { ReactNode } from "react";
import { Dialog as Base } from "@base-ui/react/dialog";
import { buttonClass } from "./button.tsx";

interface DialogProps {
  readonly open: boolean;
  readonly title: string;
  readonly description?: ReactNode;
  /** Called when the user closes the dialog. */
  readonly onClose: () => void;
  /** Closed only by its own buttons, because its content is shown once. */
  readonly sticky?: boolean;
  readonly wide?: boolean;
  readonly children: ReactNode;
}

/** Modal dialog: at the bottom of a phone's screen, centred on larger ones. */
export function Dialog({ open, title, description, onClose, sticky = false, wide = false, children }: DialogProps) {
  return (
    <Base.Root
      open={open}
      disablePointerDismissal={sticky}
      onOpenChange={(isOpen, { reason }) => {
        if (!isOpen && !(sticky && reason === "escape-key")) onClose();
      }}
    >
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 bg-veil transition-opacity duration-150 data-ending-style:opacity-0 data-starting-style:opacity-0" />
        <Base.Popup
          className={`fixed inset-x-0 bottom-0 max-h-[92dvh] overflow-y-auto rounded-t-2xl border border-line bg-surface p-6 text-ink shadow-2xl transition duration-150 data-ending-style:translate-y-2 data-ending-style:opacity-0 data-starting-style:translate-y-2 data-starting-style:opacity-0 sm:inset-x-auto sm:top-1/2 sm:bottom-auto sm:left-1/2 sm:w-[calc(100%-2rem)] sm:-translate-x-1/2 sm:-translate-y-1/2 sm:rounded-2xl ${wide ? "sm:max-w-2xl" : "sm:max-w-lg"}`}
        >
          <Base.Title className="text-lg font-semibold">{title}</Base.Title>
          {description !== undefined && (
            <Base.Description className="mt-1.5 text-[0.9375rem] wrap-anywhere text-muted">
              {description}
            </Base.Description>
          )}
          <div className="mt-5">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

interface DialogActionsProps {
  /** Label of the button that closes the dialog. Default: Cancel. */
  readonly close?: string;
  readonly children?: ReactNode;
}

/** Buttons of a dialog: the one that closes it first, the action last. */
export function DialogActions({ close = "Cancel", children }: DialogActionsProps) {
  return (
    <div className="flex flex-col-reverse gap-3 pt-2 sm:flex-row sm:justify-end">
      <Base.Close className={buttonClass("secondary")}>{close}</Base.Close>
      {children}
    </div>
  );
}

/** Closes a dialog, and resets its mutation after the closing animation, so that the content does not change while it is visible. */
export function closeAndReset(onClose: () => void, mutation: { readonly reset: () => void }): void {
  onClose();
  setTimeout(() => mutation.reset(), 200);
}
