import { useEffect, useState } from "react";
import { flushSync } from "react-dom";

/** What the page shows: HTTP beside gRPC, or one of them alone. */
export type Sides = "both" | "http" | "grpc";

export const SIDES: readonly (readonly [value: Sides, name: string])[] = [
  ["both", "Both"],
  ["http", "HTTP"],
  ["grpc", "gRPC"],
];

/** Classes for what belongs to one side, below an element with `group/docs` and `data-sides`. */
export const SIDE_CLASS = {
  http: "group-data-[sides=grpc]/docs:hidden",
  grpc: "group-data-[sides=http]/docs:hidden",
} as const;

/** Classes for what has both sides beside each other where there is room. */
export const BOTH_CLASS =
  "grid group-data-[sides=both]/docs:xl:grid-cols-2 group-data-[sides=both]/docs:print:grid-cols-2";

/** Which sides are shown; both, as soon as the address names something of one that is not. */
export function useSides(): readonly [sides: Sides, choose: (sides: Sides) => void] {
  const [sides, choose] = useState<Sides>("both");
  useEffect(() => {
    const show = (): void => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target === null || target.checkVisibility()) return;
      flushSync(() => choose("both"));
      target.scrollIntoView();
    };
    addEventListener("hashchange", show);
    return () => removeEventListener("hashchange", show);
  }, []);
  return [sides, choose];
}
