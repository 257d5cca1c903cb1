import { useState } from "react";
import { formatCount } from "../format/number.ts";
import { Button } from "./button.tsx";

interface Shown<T> {
  readonly visible: readonly T[];
  readonly hidden: number;
  readonly showMore: () => void;
}

/** As much of a long list as is shown now, in steps. */
export function useShown<T>(items: readonly T[], step: number): Shown<T> {
  const [count, setCount] = useState(step);
  return {
    visible: items.slice(0, count),
    hidden: Math.max(items.length - count, 0),
    showMore: () => setCount(count + step),
  };
}

/** Shows more of a long list, where there is more. */
export function More({ hidden, showMore }: Pick<Shown<unknown>, "hidden" | "showMore">) {
  if (hidden === 0) return null;
  return (
    <div className="mt-4 text-center">
      <Button look="secondary" onClick={showMore}>
        Show more ({formatCount(hidden)} remaining)
      </Button>
    </div>
  );
}
