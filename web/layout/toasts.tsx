import { useEffect } from "react";
import { Toast } from "@base-ui/react/toast";
import { CircleCheck, X } from "lucide-react";
import { notices } from "../components/notify.ts";
import { ICON_BUTTON } from "../components/table.tsx";

const SHOWN_MS = 6_000;

/** Shows notices for some seconds, longer while the pointer or the focus is on them. F6 goes to them, Escape closes one. */
export default function Toasts() {
  return (
    <Toast.Provider timeout={SHOWN_MS} limit={3}>
      <Toast.Portal>
        <Toast.Viewport
          aria-label="Results of actions"
          className="fixed inset-x-4 bottom-4 z-20 flex flex-col gap-2 sm:left-auto sm:w-88"
        >
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts, add } = Toast.useToastManager();
  useEffect(() => notices.showWith((title) => void add({ title })), [add]);
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      className="rounded-xl border border-line bg-surface text-ink shadow-lg transition duration-150 data-ending-style:translate-y-2 data-ending-style:opacity-0 data-limited:hidden data-starting-style:translate-y-2 data-starting-style:opacity-0"
    >
      <Toast.Content className="flex items-center gap-3 py-2 pr-2 pl-4 text-sm">
        <CircleCheck aria-hidden className="size-4.5 shrink-0 text-good" />
        <Toast.Title className="min-w-0 flex-1 wrap-anywhere" />
        <Toast.Close aria-label="Close" className={ICON_BUTTON}>
          <X aria-hidden className="size-4" />
        </Toast.Close>
      </Toast.Content>
    </Toast.Root>
  ));
}
