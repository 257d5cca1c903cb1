import { useSyncExternalStore } from "react";

/** As Tailwind's `lg`: narrower screens show a request in place of the log, not beside it. */
const WIDE = matchMedia("(min-width: 64rem)");

/** Whether there is room for a request beside or in front of the log. */
export function useIsWide(): boolean {
  return useSyncExternalStore(
    (changed) => {
      WIDE.addEventListener("change", changed);
      return () => WIDE.removeEventListener("change", changed);
    },
    () => WIDE.matches,
  );
}
