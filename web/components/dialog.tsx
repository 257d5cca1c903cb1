import { type ReactNode, useState } from "react";
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

/**
 * Modal dialog: at the bottom of a phone's screen, centred on larger ones. Its title and its `DialogFooter` stay in view
 * while the content scrolls, except on a screen so low that they would cover it.
 */
export function Dialog({ open, title, description, onClose, sticky = false, wide = false, children }: DialogProps) {
  const [isScrolled, setScrolled] = useState(false);
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
        {/* Centred by margins: moved by a part of a pixel, it would show a line of its content below what stays in view. */}
        <Base.Popup
          onScroll={({ currentTarget }) => setScrolled(currentTarget.scrollTop > 0)}
          className={`fixed inset-x-0 bottom-0 max-h-[92dvh] scroll-py-24 overflow-y-auto rounded-t-2xl border border-line bg-surface text-ink shadow-2xl transition duration-150 data-ending-style:translate-y-2 data-ending-style:opacity-0 data-starting-style:translate-y-2 data-starting-style:opacity-0 sm:inset-0 sm:m-auto sm:h-fit sm:w-[calc(100%-2rem)] sm:rounded-2xl ${wide ? "sm:max-w-2xl" : "sm:max-w-lg"}`}
        >
          <header
            className={`${STAYS} -top-px border-b px-6 pt-5 pb-4 ${isScrolled ? "border-line" : "border-transparent"}`}
          >
            <Base.Title className="text-lg font-semibold">{title}</Base.Title>
            {description !== undefined && (
              <Base.Description className="mt-1 text-sm wrap-anywhere text-muted">{description}</Base.Description>
            )}
          </header>
          <div className="px-6 pb-6 has-data-footer:pb-0">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** Classes of the parts of a dialog that stay in view. */
const STAYS = "z-10 bg-surface [@media(min-height:28rem)]:sticky";

/** Buttons at the end of a dialog. Its last element, or that of the form which has all of its content. */
export function DialogFooter({ children }: { readonly children: ReactNode }) {
  return (
    <div
      data-footer
      className={`${STAYS} -bottom-px -mx-6 flex justify-end gap-3 border-t border-line px-6 py-4 not-first:mt-6 max-sm:*:flex-1`}
    >
      {children}
    </div>
  );
}

interface DialogActionsProps {
  /** Label of the button that closes the dialog. Default: Cancel. */
  readonly close?: string;
  readonly children?: ReactNode;
}

/** Footer of a dialog with the button that closes it first, and the action last. */
export function DialogActions({ close = "Cancel", children }: DialogActionsProps) {
  return (
    <DialogFooter>
      <Base.Close className={buttonClass("secondary")}>{close}</Base.Close>
      {children}
    </DialogFooter>
  );
}

/** Closes a dialog, and resets its mutation after the closing animation, so that the content does not change while it is visible. */
export function closeAndReset(onClose: () => void, mutation: { readonly reset: () => void }): void {
  onClose();
  setTimeout(() => mutation.reset(), 200);
}
