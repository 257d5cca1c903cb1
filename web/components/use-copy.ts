import { useEffect, useState } from "react";

const SHOWN_MS = 2_000;

/** Copies a text to the clipboard. `outcome` is reset after two seconds. */
export function useCopy(text: string) {
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
  return { outcome, copy } as const;
}
