import { useSyncExternalStore } from "react";

/** As Tailwind's `lg`: on narrower screens a row of a table has two lines, and a request is shown in place of the log. */
export const useIsWide = mediaHook("(min-width: 64rem)");

/** As the breakpoint `wide` of `main.css`: on narrower screens the actions of a row are in a menu. */
export const useHasIcons = mediaHook("(min-width: 90rem)");

/** Returns a hook that tells whether the window matches a media query. */
function mediaHook(query: string): () => boolean {
  const media = matchMedia(query);
  const subscribe = (changed: () => void): (() => void) => {
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  };
  return () => useSyncExternalStore(subscribe, () => media.matches);
}
