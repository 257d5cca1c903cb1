import { Check, Copy, X } from "lucide-react";
import { useCopy } from "./use-copy.ts";

/** Small button that copies text to the clipboard, and shows whether that succeeded. `what`: name of the content, for screen readers. */
export function CopyIcon({ text, what }: { readonly text: string; readonly what: string }) {
  const { outcome, copy } = useCopy(text);
  const Icon = outcome === undefined ? Copy : outcome === "copied" ? Check : X;
  return (
    <button
      type="button"
      onClick={() => void copy()}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      className="flex size-6 items-center justify-center rounded-md text-muted hover:bg-accent-soft hover:text-accent-strong"
    >
      <Icon aria-hidden className="size-3.5" />
      <span aria-live="polite" className="sr-only">
        {outcome === undefined ? "" : outcome === "copied" ? "Copied" : "Could not copy"}
      </span>
    </button>
  );
}
