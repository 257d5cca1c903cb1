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
  const word = outcome === undefined ? "Copy" : WORDS[outcome];
  return (
    <Button look={look} size="small" onClick={() => void copy()} aria-label={`${word} ${what}`}>
      <span aria-live="polite">{word}</span>
    </Button>
  );
}

const WORDS = { copied: "Copied", failed: "Select and copy" } as const;
