import { useEffect, useState } from "react";
import { Button } from "./button.tsx";

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  readonly text: string;
  /** Name of the copied content, for screen readers. */
  readonly what: string;
  readonly look?: "primary" | "secondary";
}

/** Copies text to the clipboard, and shows whether that succeeded. */
export function CopyButton({ text, what, look = "secondary" }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  useEffect(() => {
    if (outcome === undefined) return;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    try {
      // Browsers provide the clipboard only on HTTPS and localhost.
      await navigator.clipboard.writeText(text);
      setOutcome("copied");
    } catch {
      setOutcome("failed");
    }
  };
  return (
    <Button look={look} size="small" onClick={() => void copy()} aria-label={`Copy ${what}`}>
      <span aria-live="polite">{outcome === undefined ? "Copy" : WORDS[outcome]}</span>
    </Button>
  );
}

const WORDS = { copied: "Copied", failed: "Select and copy" } as const;
