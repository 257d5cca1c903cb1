import { useState } from "react";
import { formatCount } from "../format/number.ts";
import { Button } from "./button.tsx";

interface Shown<T> {
  readonly visible: readonly T[];
  readonly hidden: number;
  readonly showMore: () => void;
}

/** Returns the visible part of a long list, which grows in steps. */
export function useShown<T>(items: readonly T[], step: number): Shown<T> {
  const [count, setCount] = useState(step);
  return {
    visible: items.slice(0, count),
    hidden: Math.max(items.length - count, 0),
    showMore: () => setCount(count + step),
  };
}

/** Button that shows more of a long list. Hidden when nothing remains. */
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

interface MorePagesProps {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly isFetchNextPageError: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Button that fetches the next page of a list. Hidden after the last one. */
export function MorePages({ hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage }: MorePagesProps) {
  if (!hasNextPage) return null;
  return (
    <div className="mt-5 text-center">
      {isFetchNextPageError && (
        <p role="alert" className="mb-3 text-sm text-danger">
          Could not load more. Try again.
        </p>
      )}
      <Button look="secondary" busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        Show more
      </Button>
    </div>
  );
}
