import { Button } from "./button.tsx";
import { useCopy } from "./use-copy.ts";

interface CopyButtonProps {
  readonly text: string;
  /** Name of the copied content, for screen readers. */
  readonly what: string;
  readonly look?: "primary" | "secondary";
}

/** Copies text to the clipboard, and shows whether that succeeded. */
export function CopyButton({ text, what, look = "secondary" }: CopyButtonProps) {
  const { outcome, copy } = useCopy(text);
  return (
    <Button look={look} size="small" onClick={() => void copy()} aria-label={`Copy ${what}`}>
      <span aria-live="polite">{outcome === undefined ? "Copy" : WORDS[outcome]}</span>
    </Button>
  );
}

const WORDS = { copied: "Copied", failed: "Select and copy" } as const;
