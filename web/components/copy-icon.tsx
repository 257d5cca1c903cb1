import { Check, Copy, X } from "lucide-react";
import { useCopy } from "./use-copy.ts";

interface CopyIconProps {
  readonly text: string;
  /** Name of the content, for screen readers. */
  readonly what: string;
  /** Classes in place of those of a small button. */
  readonly className?: string;
}

const SMALL =
  "flex size-6 items-center justify-center rounded-md text-muted hover:bg-accent-soft hover:text-accent-strong";

/** Small button that copies text to the clipboard, and shows whether that succeeded. */
export function CopyIcon({ text, what, className = SMALL }: CopyIconProps) {
  const { outcome, copy } = useCopy(text);
  const Icon = outcome === undefined ? Copy : outcome === "copied" ? Check : X;
  return (
    <button
      type="button"
      onClick={() => void copy()}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      className={className}
    >
      <Icon aria-hidden className="size-3.5" />
      <span aria-live="polite" className="sr-only">
        {outcome === undefined ? "" : outcome === "copied" ? "Copied" : "Could not copy"}
      </span>
    </button>
  );
}
