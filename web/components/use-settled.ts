import { useEffect, useState } from "react";

/** Time without typing after which a search begins. */
const SETTLE_MS = 250;

/** Returns the text of a search once it has not changed for a while. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
